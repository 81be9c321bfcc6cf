import { createInterface } from 'node:readline/promises';

/** Whether there is a terminal, and so a person to ask back. */
export function mayAsk(): boolean {
  return process.stdin.isTTY && process.stderr.isTTY;
}

/** Asks a person back, on a terminal; a script is taken at its word. Anything but yes is no. */
export async function confirmed(question: string): Promise<boolean> {
  if (!mayAsk()) return true;
  const terminal = createInterface({ input: process.stdin, output: process.stderr });
  const closed = new Promise<string>((resolve) => terminal.once('close', () => resolve('')));
  try {
    const answer = await Promise.race([terminal.question(`${question} [y/N] `), closed]);
    return /^y(es)?$/i.test(answer.trim());
  } finally {
    terminal.close();
  }
}
