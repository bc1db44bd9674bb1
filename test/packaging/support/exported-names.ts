import ts from 'typescript';

export interface ExportedName {
  readonly name: string;
  readonly kind: 'class' | 'function' | 'constant' | 'type';
  /** Its TSDoc, without the tags. */
  readonly docs: string;
  /** How it is called: a function, or the methods of a class. */
  readonly calls: readonly string[];
}

/** The exports of a declaration file, sorted. */
export function exportsOf(path: string): readonly ExportedName[] {
  const program = ts.createProgram([path], {
    module: ts.ModuleKind.NodeNext,
    target: ts.ScriptTarget.ES2023,
    skipLibCheck: true,
    types: [],
  });
  const checker = program.getTypeChecker();
  const file = checker.getSymbolAtLocation(program.getSourceFile(path)!);
  if (file === undefined) throw new Error(`${path} is not a module`);
  return checker
    .getExportsOfModule(file)
    .map((symbol): ExportedName => {
      const original =
        symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol;
      const { name } = symbol;
      // A class that is exported with `export type` is a type.
      const typeOnly = symbol.declarations?.some(ts.isTypeOnlyExportDeclaration) ?? false;
      const kind = typeOnly ? 'type' : kindOf(original);
      const docs = ts
        .displayPartsToString(original.getDocumentationComment(checker))
        .replaceAll(/\{@link (\w+) ?\}/g, '`$1`');
      return { name, kind, docs, calls: kind === 'type' ? [] : callsOf(name, original) };
    })
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

/** Names of what is there when a program runs. */
export function valuesOf(path: string): readonly string[] {
  return exportsOf(path).flatMap(({ name, kind }) => (kind === 'type' ? [] : name));
}

function kindOf({ flags }: ts.Symbol): ExportedName['kind'] {
  if (flags & ts.SymbolFlags.Class) return 'class';
  if (flags & ts.SymbolFlags.Function) return 'function';
  return flags & ts.SymbolFlags.Value ? 'constant' : 'type';
}

function callsOf(name: string, { declarations = [] }: ts.Symbol): readonly string[] {
  const methods = declarations.filter(ts.isClassDeclaration).flatMap(({ members }) => members);
  const callables = [...declarations, ...methods].filter(
    (each) => ts.isFunctionDeclaration(each) || ts.isMethodDeclaration(each),
  );
  const calls = callables
    .filter((each) => !/^(private|protected) |@internal/m.test(each.getFullText()))
    .map((each) => {
      const parameters = each.parameters.map((parameter) => {
        const isOptional = parameter.questionToken ?? parameter.initializer;
        return `${parameter.name.getText()}${isOptional ? '?' : ''}`;
      });
      return `${each.name?.getText() ?? name}(${parameters.join(', ')})`;
    });
  return [...new Set(calls)].filter((call) => !/^on(Module|Application)|^before/.test(call));
}
