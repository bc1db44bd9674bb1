import { Body, Controller, HttpCode, HttpStatus, Post } from '@nestjs/common';

@Controller('echo')
export class EchoController {
  @Post()
  @HttpCode(HttpStatus.OK)
  echo(@Body() body: unknown): unknown {
    return body;
  }
}
