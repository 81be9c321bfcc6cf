import { Failure } from '../../core/failure.ts';
import { Secret } from '../../core/secret.ts';
import { promptHidden } from './prompt.ts';

/** The most characters of a token. */
const MAX_TOKEN_LENGTH = 16_384;
/** VSCHAR of RFC 6749, appendix A.17, without the space, which no portal uses. */
const TOKEN_CHARACTERS = /^[\x21-\x7e]*$/;

/**
 * Reads a refresh token from standard input: one line, without an echo if a person types it.
 * @param question is shown on a terminal
 * @throws Failure `request_invalid` if it is no token
 */
export async function readRefreshToken(question: string): Promise<Secret> {
  const text = process.stdin.isTTY ? ((await promptHidden([question]))[0] ?? '') : await readStandardInput();
  const token = text.trim();
  const problem = tokenProblem(token);
  if (problem === null) return new Secret(token);
  throw new Failure(
    'request_invalid',
    `${problem}, and nothing was done: give the refresh token alone, on one line, such as "latchkey connection import NAME < FILE"`,
  );
}

/**
 * Reads a client secret from standard input: one line, without an echo if a person types it.
 * @param question is shown on a terminal
 * @returns null if it is empty: the client has none
 * @throws Failure `request_invalid` if it is not one line
 */
export async function readClientSecret(question: string): Promise<Secret | null> {
  const text = process.stdin.isTTY ? ((await promptHidden([question]))[0] ?? '') : await readStandardInput();
  const secret = text.trim();
  if (secret === '') return null;
  if (!/[\r\n]/.test(secret) && secret.length <= MAX_TOKEN_LENGTH) return new Secret(secret);
  throw new Failure(
    'request_invalid',
    'standard input is not one client secret, and nothing was done: give the secret alone, on one line',
  );
}

/**
 * Reads the address on which a browser ended from standard input, without an echo if a person pastes it.
 * @param question is shown on a terminal
 * @throws Failure `request_invalid` if it is not one line
 */
export async function readAddress(question: string): Promise<Secret> {
  const text = process.stdin.isTTY ? ((await promptHidden([question]))[0] ?? '') : await readStandardInput();
  const address = text.trim();
  if (address !== '' && !/[\r\n]/.test(address) && address.length <= MAX_TOKEN_LENGTH) return new Secret(address);
  throw new Failure(
    'request_invalid',
    'standard input is not one address, and nothing was done: give the whole address of the browser, on one line',
  );
}

/** Why a text is no token, without the text itself; null if it may be one. */
function tokenProblem(token: string): string | null {
  if (token === '') return 'standard input is empty';
  if (token.length > MAX_TOKEN_LENGTH) return `standard input has more than ${MAX_TOKEN_LENGTH} characters`;
  if (/[\r\n]/.test(token)) return 'standard input has several lines';
  return TOKEN_CHARACTERS.test(token) ? null : 'standard input has a space or a character that is not printable ASCII';
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
