// Runs `NAME.body.js` for `NAME.cjs`, compiled from `NAME.body.js.VERSION` where this Node has that.
const { readFileSync } = require('node:fs');
const path = require('node:path');
const { Script } = require('node:vm');

module.exports = function run(module, require) {
  const body = module.filename.replace(/cjs$/, 'body.js');
  const cache = `${body}.${process.version}`;
  const { exports, filename } = module;
  const script = new Script(
    `(function (exports, require, module, __filename, __dirname, importFromCache) {${readFileSync(body, 'utf8')}\n})`,
    { filename: body, cachedData: read(cache) },
  );
  run.made?.set(cache, script);
  script
    .runInThisContext()
    .call(exports, exports, require, module, filename, path.dirname(filename), importPackage);
};

/** Packages alone: files of their own are in the bundles. */
function importPackage(specifier) {
  return import(specifier);
}

function read(file) {
  try {
    return readFileSync(file);
  } catch {
    return undefined; // V8 compiles it
  }
}
