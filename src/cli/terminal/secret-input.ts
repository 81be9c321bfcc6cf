import { Failure } from '../../core/failure.ts';
import { Secret } from '../../core/secret.ts';
import { promptHidden } from './prompt.ts';

/** The most characters of a token. */
const MAX_TOKEN_LENGTH = 16_384;
/** VSCHAR of RFC 6749, appendix A.17, without the space, which no portal uses. */
const TOKEN_CHARACTERS = /^[\x21-\x7e]*$/;
const ONE_LINE = /^[^\r\n]*$/;

/**
 * Reads a token from standard input: one line, without an echo if a person types it.
 * @param question is shown on a terminal
 * @param command that reads it, for the error
 * @throws Failure `request_invalid` if it is no token
 */
export async function readToken(question: string, command: string): Promise<Secret> {
  const token = await readInput(question);
  assertLine(token, TOKEN_CHARACTERS, `give the token alone, on one line, such as "${command} < FILE"`);
  return new Secret(token);
}

/**
 * Reads a client secret from standard input: one line, without an echo if a person types it.
 * @param question is shown on a terminal
 * @returns null if it is empty: the client has none
 * @throws Failure `request_invalid` if it is not one line
 */
export async function readClientSecret(question: string): Promise<Secret | null> {
  const secret = await readInput(question);
  if (secret === '') return null;
  assertLine(secret, ONE_LINE, 'give the secret alone, on one line');
  return new Secret(secret);
}

/**
 * Reads the address on which a browser ended from standard input, without an echo if a person pastes it.
 * @param question is shown on a terminal
 * @throws Failure `request_invalid` if it is not one line
 */
export async function readAddress(question: string): Promise<Secret> {
  const address = await readInput(question);
  assertLine(address, ONE_LINE, 'give the whole address of the browser, on one line');
  return new Secret(address);
}

/** @throws Failure `request_invalid`, which says what is wrong without the text itself */
function assertLine(text: string, permitted: RegExp, advice: string): void {
  const problem = lineProblem(text, permitted);
  if (problem !== null)
    throw new Failure('request_invalid', `standard input ${problem}, and nothing was done: ${advice}`);
}

function lineProblem(text: string, permitted: RegExp): string | null {
  if (text === '') return 'is empty';
  if (text.length > MAX_TOKEN_LENGTH) return `has more than ${MAX_TOKEN_LENGTH} characters`;
  if (!ONE_LINE.test(text)) return 'has several lines';
  return permitted.test(text) ? null : 'has a space or a character that is not printable ASCII';
}

/** What is typed at a terminal, without an echo, or comes on standard input; without white space around it. */
async function readInput(question: string): Promise<string> {
  const text = process.stdin.isTTY ? ((await promptHidden([question]))[0] ?? '') : await readStandardInput();
  return text.trim();
}

/** The text on standard input. A text that is too long for a token is not read to its end. */
async function readStandardInput(): Promise<string> {
  let text = '';
  process.stdin.setEncoding('utf8');
  for await (const part of process.stdin) {
    text += String(part);
    if (text.length > 2 * MAX_TOKEN_LENGTH) break;
  }
  return text;
}
