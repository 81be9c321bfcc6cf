import { Failure } from '../core/failure.ts';
import type { PairingReport } from '../core/pairing-report.ts';
import type { FailureAnswer } from './messages.ts';

/**
 * Reads a 2xx answer; an empty one is undefined.
 * @throws Failure `unexpected` where it is no JSON
 */
export function parseAnswer<T>(text: string): T {
  return (text === '' ? undefined : parseJson(text)) as T;
}

/** Reads an answer that is not 2xx. */
export function parseFailure(status: number, text: string): Failure {
  const { code, message } = (parseJson(text) ?? {}) as Partial<FailureAnswer>;
  if (typeof code === 'string' && typeof message === 'string') return new Failure(code, message);
  return new Failure(
    'unexpected',
    `the hub answered with the status ${status} and no reason: see its log ("journalctl -u latchkey")`,
  );
}

/** Reads a pairing's reports, one JSON object a line, as they come in. */
export async function* parseReports(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<PairingReport> {
  const decoder = new TextDecoder();
  let pending = '';
  for await (const chunk of chunks) {
    const lines = (pending + decoder.decode(chunk, { stream: true })).split('\n');
    pending = lines.pop() ?? '';
    for (const line of lines) yield parseJson(line) as PairingReport;
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Failure(
      'unexpected',
      'the hub answered with something that is no JSON: see whether it and this command are one version, and its log',
      { cause: error },
    );
  }
}
