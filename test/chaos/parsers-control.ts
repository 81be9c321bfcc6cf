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

/** A running hub's control socket, and what can be sent to it as raw bytes; what comes over the network is `lan/fuzz`'s. */
export interface ControlParserCases extends AsyncDisposable {
  readonly trials: readonly ParserCase<string>[];
  /** What the daemon came to, and what its log says that it should not, in one sentence each. */
  conclusions(): Promise<string[]>;
}

/** A hub with a paired appliance, whose secrets nobody who sends these inputs knows, and with an open pairing. */
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
  async function judge(bytes: string): Promise<string | null> {
    sent += 1;
    const said = await converse(join(hub.directory, 'state/control.sock'), bytes);
    if (/^HTTP\/1\.1 [1-4]/.test(said)) answered += 1;
    const failed = /^HTTP\/1\.1 5(?!0[2-7])\d\d /m.test(said);
    return failed ? `it answers ${said.slice(0, 300)}` : findLeakedSecret(said, secrets);
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
        try: judge,
      },
      {
        name: 'bytes to the control socket',
        inputs: mutatedTexts(
          request('GET', '/v1/status'),
          request('POST', '/v1/appliances', '{"name":"lamp"}', JSON_BODY),
          request('GET', '/v1/pairings/11111111-1111-4111-8111-111111111111/events'),
          request('DELETE', '/v1/appliances/nobody'),
        ),
        try: judge,
      },
    ],
    async conclusions() {
      const lines = readFileSync(hub.log, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
      const odd = lines.filter((line) => !line.startsWith('{"level"') || /unexpected|crashed/.test(line));
      const told = findLeakedSecret(lines.join('\n'), secrets);
      const served = await hub.requestToken(victim).then(
        ({ status }) => status === 200,
        () => false,
      );
      return [
        ...(answered < sent / 4 ? [`only ${answered} of ${sent} that were sent were answered`] : []),
        ...(hub.pid === pid && served ? [] : ['the daemon ended, or serves no more']),
        ...odd.slice(0, 3).map((line) => `the log has an unexpected line: ${line.slice(0, 300)}`),
        ...(told === null ? [] : ['the log tells a secret']),
      ];
    },
    [Symbol.asyncDispose]: () => resources.disposeAsync(),
  };
}

/** A request whose length is right, however odd its parts are. */
function request(method: string, path: string, body = '', headers = ''): string {
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n${headers}content-length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
}

/** Sends all of it, and reads to the end of the connection. */
function converse(path: string, bytes: string): Promise<string> {
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
      reject(new Error(`the connection stays open; so far it said ${received.slice(0, 200)}`));
    });
    socket.once('close', () => resolve(received));
  });
}
