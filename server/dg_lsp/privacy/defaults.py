"""Files that hold secrets by custom: left alone until the user's own settings say otherwise."""

from __future__ import annotations

from dg_lsp.privacy.patterns import Patterns

SECRET_FILES = """
.env
.env.*
*.env
!.env.example
!.env.sample
!.env.template
!example.env
!sample.env
!template.env
.envrc
.dev.vars

*.pem
*.key
*.p12
*.pfx
*.ppk
*.keystore
*.jks
*.kdbx
id_rsa*
id_dsa*
id_ecdsa*
id_ed25519*
.gnupg/
.ssh/

.netrc
_netrc
.pgpass
.my.cnf
.npmrc
.pypirc
.htpasswd
.git-credentials
.vault-token
.s3cfg
.boto
.terraformrc
.dockercfg
**/.docker/config.json

**/.aws/credentials
**/.aws/config
.azure/
**/.config/gcloud/
**/.config/gh/hosts.yml
**/.kube/config
kubeconfig
**/.cargo/credentials
**/.cargo/credentials.toml
**/.gem/credentials
application_default_credentials.json
client_secret*.json
service-account*.json
service_account*.json
serviceAccount*.json

secrets.yml
secrets.yaml
secrets.json
secrets.toml
secrets.*.yml
secrets.*.yaml
secrets.*.json
secrets.*.toml
*.tfstate
*.tfstate.*
*.tfvars
*.tfvars.json

.git/

.*_history
.histfile
fish_history
ConsoleHost_history.txt
.viminfo
.lesshst
"""
"""In the syntax of an ignore file, against whole paths: a workspace may itself be `~/.aws`."""

SECRET_PATTERNS = Patterns.of(SECRET_FILES.splitlines(), ignore_case=True)
"""Compiled for paths in lower case: `.ENV` and `Server.PEM` are no less secret."""
