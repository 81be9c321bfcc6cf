import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import fc from 'fast-check';
import { scaleDeadline } from '../support/deadlines.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { startPortal } from '../support/portal.ts';
import { findLeakedSecret, type ParserCase } from './parser-case.ts';
import { mutatedJson, mutatedTexts } from './parsers-mutations.ts';

const PASSPHRASE = 'planted passphrase of a backup';
const JSON_BODY = 'content-type: application/json\r\n';

/** Raw bytes for the control socket of a running hub. `scripts/fuzz --target hub` tests the network ports. */
export interface ControlParserCases extends AsyncDisposable {
  readonly trials: readonly ParserCase<string>[];
  /** One sentence for each problem of the daemon and its log, at the end. */
  conclusions(): Promise<string[]>;
}

/** Starts a hub with a paired appliance, whose secrets must not appear in a response, and with an open pairing. */
export async function startControlParserCases(): Promise<ControlParserCases> {
  await using starting = new AsyncDisposableStack();
  const portal = starting.use(await startPortal());
  const hub = starting.use(await HubProcess.start({ emulator: portal }));
  const { pid } = hub;
  const victim = await hub.addAppliance('victim', 'Monitoring');
  await hub.addAppliance('lamp');
  await hub.pair('victim', portal);
  await hub.beginPairing('lamp');
  const token = (await hub.requestToken(victim)).body['access_token'];
  const secrets = [victim.client_secret, portal.clientSecret, String(token), PASSPHRASE];
  rememberSecrets(secrets);
  const resources = starting.move();

  let sent = 0;
  let answered = 0;
  async function check(bytes: string): Promise<string | null> {
    sent += 1;
    const response = await exchange(join(hub.directory, 'state/control.sock'), bytes);
    if (/^HTTP\/1\.1 [1-4]/.test(response)) answered += 1;
    const failed = /^HTTP\/1\.1 5(?!0[2-7])\d\d /m.test(response);
    return failed ? `the response is ${response.slice(0, 300)}` : findLeakedSecret(response, secrets);
  }
  const add = mutatedJson({ name: ['heater', 'lamp', 7], scope: ['A B', null], portal: ['home', 'away'] });
  const backup = mutatedJson({
    passphrase: [PASSPHRASE, 7],
    copy: ['', 'eyJhbGciOiJQQkVTMi1IUzUxMitBMjU2S1cifQ.a.b.c.d'],
  });
  const messages = fc.record({
    path: fc.constantFrom('/v1/appliances', '/v1/restore', '/v1/restore', '/v1/nothing'),
    body: fc.oneof(add, backup),
  });
  return {
    trials: [
      {
        name: 'control messages',
        inputs: messages.map(({ path, body }) => request('POST', path, body, JSON_BODY)),
        try: check,
      },
      {
        name: 'bytes to the control socket',
        inputs: mutatedTexts(
          request('GET', '/v1/status'),
          request('POST', '/v1/appliances', '{"name":"lamp"}', JSON_BODY),
          request('GET', '/v1/pairings/11111111-1111-4111-8111-111111111111/events'),
          request('DELETE', '/v1/appliances/nobody'),
        ),
        try: check,
      },
    ],
    async conclusions() {
      const lines = readFileSync(hub.log, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
      const unexpected = lines.filter((line) => !line.startsWith('{"level"') || /unexpected|crashed/.test(line));
      const leaked = findLeakedSecret(lines.join('\n'), secrets);
      const served = await hub.requestToken(victim).then(
        ({ status }) => status === 200,
        () => false,
      );
      return [
        ...(answered < sent / 4 ? [`only ${answered} of ${sent} requests got a response`] : []),
        ...(hub.pid === pid && served ? [] : ['the daemon has ended, or issues no tokens']),
        ...unexpected.slice(0, 3).map((line) => `the log has an unexpected line: ${line.slice(0, 300)}`),
        ...(leaked === null ? [] : ['the log contains a secret']),
      ];
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** A request with a correct content-length, even if its parts are invalid. */
function request(method: string, path: string, body = '', headers = ''): string {
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Sends all bytes, and reads to the end of the connection. */
function exchange(path: string, bytes: string): Promise<string> {
  const socket = connect(path);
  let received = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    received += piece;
  });
  socket.on('error', () => undefined);
  socket.end(Buffer.from(bytes));
  return new Promise((resolve, reject) => {
    socket.setTimeout(scaleDeadline(12_000), () => {
      socket.destroy();
      reject(new Error(`the connection stays open; received so far: ${received.slice(0, 200)}`));
    });
    socket.once('close', () => resolve(received));
  });
}
