import { expect, it } from 'vitest';
import { CodeMap } from '../../../../src/tools/advise/code-map.js';

/** A class in one line. V8 places a function at its parameters. */
const TEXT = 'class A{async first(){return 1}second(){return [].map(()=>2)}}';

function codeMapOf(texts: readonly string[]): CodeMap {
  const placeOf = (text: string) => {
    const at = TEXT.indexOf(text);
    const columnNumber = text === TEXT ? at : at + text.indexOf('(');
    return { scriptId: '7', lineNumber: 0, columnNumber };
  };
  const methods = texts.slice(1).map((text, index) => ({
    name: `A.${/(\w+)\(/.exec(text)![1]}`,
    route: null,
    cpuBound: false,
    refusal: null,
    warnings: [],
    code: index + 1,
    declaredBy: 0,
  }));
  const extents = texts.map((text) => [0, text.length] as const);
  return new CodeMap({ list: { methods, extents }, places: texts.map(placeOf) });
}

it('finds the methods of a class in one line, where each begins right after the one before', () => {
  const code = codeMapOf([TEXT, 'async first(){return 1}', 'second(){return [].map(()=>2)}']);
  const methodAt = (text: string, functionName = '') => {
    const columnNumber = TEXT.indexOf(text);
    return code.methodOf({ scriptId: '7', url: '', lineNumber: 0, columnNumber, functionName })
      ?.name;
  };
  expect(methodAt('(){return 1}')).toBe('A.first');
  expect(methodAt('(){return [')).toBe('A.second');
  expect(methodAt('()=>2')).toBe('A.second');
  expect(methodAt('class A')).toBeUndefined();
  expect(
    code.methodOf({ scriptId: '8', url: '', lineNumber: 0, columnNumber: 20, functionName: '' }),
  ).toBeUndefined();
});
