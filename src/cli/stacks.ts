import { notice, printable } from './output.ts';

/** Whether whoever runs this has asked for stack traces. */
export function wantsStacks(): boolean {
  return process.env['LATCHKEY_DEBUG'] === '1';
}

/** The stacks of an error and of its causes on standard error, where they were asked for. */
export function showStacks(error: unknown): void {
  if (!wantsStacks()) return;
  for (let current = error, depth = 0; current instanceof Error && depth < 8; current = current.cause, depth++) {
    const code = 'code' in current ? ` [${String(current.code)}]` : '';
    notice(`${depth === 0 ? '' : 'caused by '}${current.name}${code}: ${printable(current.message)}`);
    for (const frame of framesOf(current)) notice(`    ${printable(frame)}`);
    if (current instanceof AggregateError) for (const one of current.errors) showStacks(one);
  }
}

/** Where an error came from: the stack without the message, innermost first; eight places at most. */
export function framesOf(error: unknown): string[] {
  const stack = error instanceof Error ? (error.stack ?? '') : '';
  return stack
    .split('\n')
    .filter((line) => /^\s+at /.test(line))
    .slice(0, 8)
    .map((line) => line.trim());
}
