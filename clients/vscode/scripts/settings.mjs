// Writes the server's settings into package.json from the schema that the server itself checks.
// Needs a Python with the server: $PYTHON, else the repository's .venv.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { generated, REPOSITORY, read } from "./project.mjs";

const PROGRAM = `
import ast, inspect, json, msgspec
from dg_lsp import configuration
schema = msgspec.json.schema(configuration.Configuration)
body = ast.parse(inspect.getsource(configuration.Configuration)).body[0].body
docs = {
    field.target.id: text.value.value
    for field, text in zip(body, body[1:])
    if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr)
}
names = {f.name: f.encode_name for f in msgspec.structs.fields(configuration.Configuration)}
schema = schema["$defs"]["Configuration"]["properties"]
print(json.dumps({names[f]: {"schema": schema[names[f]], "text": docs[f]} for f in names}))
`;

const repositoryPython = join(REPOSITORY, ".venv", "bin", "python");
const python = process.env.PYTHON ?? (existsSync(repositoryPython) ? repositoryPython : "python3");
const fields = JSON.parse(execFileSync(python, ["-c", PROGRAM], { encoding: "utf8" }));

/** VS Code shows one kind of input per setting, so "a number or null" is told by a list of types. */
function property(name, { schema }) {
  const choices = schema.anyOf ?? [schema];
  const types = choices.map((choice) => choice.type ?? (choice.enum ? "string" : undefined));
  const known = choices.find((choice) => choice.type !== "null") ?? {};
  const limits = Object.fromEntries(
    ["minimum", "maximum", "enum", "items"]
      .filter((key) => key in known)
      .map((key) => [key, known[key]]),
  );
  return {
    type: types.length === 1 ? types[0] : types,
    ...limits,
    default: schema.default ?? null,
    scope: name === "model" ? "machine-overridable" : "window",
    markdownDescription: `%settings.${name}%`,
  };
}

const manifest = JSON.parse(read("package.json"));
const section = manifest.contributes.configuration.find(({ order }) => order === 2);
section.properties = Object.fromEntries(
  Object.entries(fields).map(([name, field]) => [`dgLsp.${name}`, property(name, field)]),
);
generated("package.json", `${JSON.stringify(manifest, null, 2)}\n`);

const texts = JSON.parse(read("package.nls.json"));
for (const [name, { text }] of Object.entries(fields)) texts[`settings.${name}`] = text;
generated("package.nls.json", `${JSON.stringify(texts, null, 2)}\n`);
generated("src/serverSettings.json", `${JSON.stringify(Object.keys(fields))}\n`);
