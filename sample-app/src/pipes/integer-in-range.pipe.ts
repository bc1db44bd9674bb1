import { type ArgumentMetadata, BadRequestException, type PipeTransform } from '@nestjs/common';

export class IntegerInRangePipe implements PipeTransform<string, number> {
  constructor(
    private readonly min: number,
    private readonly max: number,
  ) {}

  transform(value: string, { data }: ArgumentMetadata): number {
    const integer = /^\d+$/.test(value) ? Number(value) : NaN;
    if (integer >= this.min && integer <= this.max) return integer;
    throw new BadRequestException(
      `${data} must be a whole number from ${this.min} to ${this.max}, but is "${value}"`,
    );
  }
}
