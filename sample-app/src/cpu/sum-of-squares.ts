export interface SumAnswer {
  sum: number;
}

export function sumOfRandomSquares(count: number): number {
  const numbers: number[] = [];
  for (let i = 0; i < count; i++) numbers.push(Math.random());
  return numbers.reduce((sum, number) => sum + number * number, 0);
}
