import { Controller, Get, Header } from '@nestjs/common';
import { AppService } from './app.service.js';

@Controller()
export class AppController {
  constructor(private readonly appService: AppService) {}

  @Get()
  @Header('Content-Type', 'text/html; charset=utf-8')
  getPage(): string {
    return this.appService.getPage();
  }

  @Get('hello')
  getHello(): string {
    return this.appService.getHello();
  }
}
