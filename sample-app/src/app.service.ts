import { readFileSync } from 'node:fs';
import { Injectable } from '@nestjs/common';

@Injectable()
export class AppService {
  private readonly page = readFileSync(new URL('../public/index.html', import.meta.url), 'utf8');

  getPage(): string {
    return this.page;
  }

  getHello(): string {
    return 'Hello World!';
  }
}
