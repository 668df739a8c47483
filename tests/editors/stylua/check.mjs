// Whether all Lua in the repository is as StyLua writes it: node check.mjs [--write]
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  Config,
  formatCode,
  IndentType,
  LuaVersion,
  OutputVerification,
  QuoteStyle,
} from '@johnnymorganz/stylua';

const root = fileURLToPath(new URL('../../..', import.meta.url));
// The settings of clients/nvim/.stylua.toml, which editors and the program itself read.
const wanted = Object.fromEntries(
  readFileSync(join(root, 'clients/nvim/.stylua.toml'), 'utf8')
    .split('\n')
    .map((line) => /^(\w+) = "?(\w+)"?$/.exec(line)?.slice(1))
    .filter((pair) => pair !== undefined),
);

// A Config is used up by what is formatted with it.
function settings() {
  const config = Config.new();
  config.syntax = LuaVersion.LuaJIT;
  config.column_width = Number(wanted.column_width);
  config.indent_type = IndentType[wanted.indent_type];
  config.indent_width = Number(wanted.indent_width);
  config.quote_style = QuoteStyle[wanted.quote_style];
  return config;
}

const files = execFileSync('git', ['ls-files', '*.lua'], { cwd: root, encoding: 'utf8' });
for (const file of files.split('\n').filter(Boolean)) {
  const path = join(root, file);
  const text = readFileSync(path, 'utf8');
  let formatted;
  try {
    formatted = formatCode(text, settings(), undefined, OutputVerification.Full);
  } catch (error) {
    console.log(`${file}: ${error}`);
    process.exitCode = 1;
    continue;
  }
  if (formatted === text) continue;
  if (process.argv.includes('--write')) {
    writeFileSync(path, formatted);
    continue;
  }
  console.log(`${file} is not as StyLua writes it; --write writes it so.`);
  process.exitCode = 1;
}
