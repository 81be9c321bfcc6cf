/** Whether what stands there can be written over: it is a terminal, and not one that can only go on. */
export function drawsOver(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && process.env['TERM'] !== 'dumb';
}
