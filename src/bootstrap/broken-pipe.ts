/**
 * Keeps a process alive whose output nobody reads any more (`| head`, a log
 * shipper that has crashed): Node would end it with an error of its stream.
 */
export function outliveReadersOfOutput(): void {
  for (const stream of [process.stdout, process.stderr]) {
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }
}
