;;; package.el --- What a package manager does for lsp-mode  -*- lexical-binding: t; -*-

;; The configuration itself is the one of docs/clients.md, loaded after this.

;;; Code:

(dolist (folder load-path)
  (let ((autoloads (expand-file-name "autoloads.el" folder)))
    (when (file-exists-p autoloads) (load autoloads nil t))))

;; Otherwise lsp-mode asks which folder is the project's.
(setq lsp-auto-guess-root t
      lsp-enable-snippet nil
      native-comp-async-report-warnings-errors nil)

;;; package.el ends here
