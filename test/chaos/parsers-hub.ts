import { readFileSync } from 'node:fs';
import { connect as connectPlain, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectSecure } from 'node:tls';
import fc from 'fast-check';
import { basic, FORM } from '../lan/wire.ts';
import { stateOf, until, visit } from '../reliability/fleet.ts';
import { EmulatorProcess } from '../support/emulator-process.ts';
import { HubProcess } from '../support/hub-process.ts';
import { rememberSecrets } from '../support/logs.ts';
import { patient } from '../support/patience.ts';
import { type Trial, tells } from './parsers-check.ts';
import { nearly, nearlyJson } from './parsers-mutations.ts';

const PASSPHRASE = 'planted passphrase of a backup';

/** A running hub, and what can be sent to it as raw bytes. */
export interface HubTrials extends AsyncDisposable {
  readonly trials: readonly Trial<string>[];
  /** What the daemon came to, and what its log says that it should not, in one sentence each. */
  conclusions(): Promise<string[]>;
}

/** A hub with a paired appliance, whose secrets nobody who sends these inputs knows, and with an open pairing. */
export async function hubTrials(): Promise<HubTrials> {
  await using starting = new AsyncDisposableStack();
  const portal = starting.use(await EmulatorProcess.start('--show-secrets'));
  const hub = starting.use(await HubProcess.start({ emulator: portal }));
  const { pid } = hub;
  const [victim, lamp] = await hub.ask(
    async (control) =>
      [
        await control.addAppliance('victim', 'Monitoring', null),
        await control.addAppliance('lamp', null, null),
      ] as const,
  );
  for (const name of ['victim', 'lamp']) await hub.ask((control) => control.pair(name));
  const { authorize_url } = await until(hub, 'victim', (status) => status.authorize_url !== undefined);
  await visit(await portal.login(stateOf(authorize_url), 'demo'));
  await until(hub, 'victim', ({ state }) => state === 'active');
  await until(hub, 'lamp', (status) => status.authorize_url !== undefined);
  const token = (await hub.requestToken(victim)).body['access_token'];
  const secrets = [victim.client_secret, portal.clientSecret, String(token), PASSPHRASE];
  rememberSecrets([...secrets, lamp.client_secret]);
  const ca = (await hub.ask((control) => control.authority())).certificate;
  const callback = await callbackOf(portal);
  const resources = starting.move();

  const open = {
    http: () => connectPlain({ host: '127.0.0.1', port: hub.httpPort }),
    https: () => connectSecure({ host: '127.0.0.1', port: hub.httpsPort, ca }),
    control: () => connectPlain(join(hub.directory, 'state/control.sock')),
  };
  const sent = { http: 0, https: 0, control: 0 };
  const answered = { http: 0, https: 0, control: 0 };
  const judged = (way: keyof typeof open, meant: RegExp) => async (bytes: string) => {
    sent[way] += 1;
    const said = await converse(open[way](), bytes);
    if (/^HTTP\/1\.1 [1-4]/.test(said)) answered[way] += 1;
    const failed = [...said.matchAll(/^HTTP\/1\.1 5\d\d /gm)].find(([status]) => !meant.test(status));
    return failed === undefined ? tells(said, secrets) : `it answers ${said.slice(0, 300)}`;
  };
  const tokenRequest = fc
    .record({
      authorization: nearly(basic(lamp), 'Basic Og==', `Bearer ${lamp.client_secret}`),
      body: nearly(
        'grant_type=client_credentials&scope=A',
        `grant_type=client_credentials&client_id=${lamp.client_id}&client_secret=${lamp.client_secret}`,
      ),
    })
    .map(({ authorization, body }) =>
      request(
        'POST',
        '/oauth/token',
        body,
        `authorization: ${authorization.replaceAll(/[\r\n]/g, '')}\r\ncontent-type: ${FORM}\r\n`,
      ),
    );
  const add = nearlyJson({ name: ['heater', 'lamp', 7], scope: ['A B', null], portal: ['home', 'away'] });
  const backup = nearlyJson({
    passphrase: [PASSPHRASE, 7],
    copy: ['', 'eyJhbGciOiJQQkVTMi1IUzUxMitBMjU2S1cifQ.a.b.c.d'],
  });
  const control = fc.record({
    path: fc.constantFrom('/v1/appliances', '/v1/restore', '/v1/restore', '/v1/nothing'),
    add,
    backup,
    adding: fc.boolean(),
  });
  return {
    trials: [
      { name: 'token requests', inputs: tokenRequest, try: judged('https', /503/) },
      {
        name: 'bytes to the HTTPS port',
        inputs: nearly(
          request(
            'POST',
            '/oauth/token',
            'grant_type=client_credentials',
            `authorization: ${basic(lamp)}\r\ncontent-type: ${FORM}\r\n`,
          ),
          request('GET', '/.well-known/oauth-authorization-server'),
        ),
        try: judged('https', /503/),
      },
      {
        name: 'callbacks',
        inputs: nearly(
          ...['code=abc', 'code=a&state=b', 'error=access', 'code='].map((query) => `${callback}?${query}`),
        ).map((path) => request('GET', path.replaceAll(/[\r\n ]/g, ''))),
        try: judged('http', /never/),
      },
      {
        name: 'bytes to the HTTP port',
        inputs: nearly(request('GET', `${callback}?code=abc`), request('GET', '/ca.pem')),
        try: judged('http', /never/),
      },
      {
        name: 'control messages',
        inputs: control.map((one) =>
          request('POST', one.path, one.adding ? one.add : one.backup, 'content-type: application/json\r\n'),
        ),
        try: judged('control', /50[2-7]/),
      },
      {
        name: 'bytes to the control socket',
        inputs: nearly(
          request('GET', '/v1/status'),
          request('POST', '/v1/appliances', '{"name":"lamp"}', 'content-type: application/json\r\n'),
          request('GET', '/v1/pairings/11111111-1111-4111-8111-111111111111/events'),
          request('DELETE', '/v1/appliances/nobody'),
        ),
        try: judged('control', /50[2-7]/),
      },
    ],
    async conclusions() {
      const lines = readFileSync(hub.log, 'utf8')
        .split('\n')
        .filter((line) => line !== '');
      const odd = lines.filter((line) => !line.startsWith('{"level"') || /unexpected|crashed/.test(line));
      const told = tells(lines.join('\n'), secrets);
      const served = await hub.requestToken(victim).then(
        ({ status }) => status === 200,
        () => false,
      );
      const ways = ['http', 'https', 'control'] as const;
      const silent = ways.filter((way) => answered[way] < sent[way] / 4);
      return [
        ...silent.map((way) => `only ${answered[way]} of ${sent[way]} that were sent by ${way} were answered`),
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

/** Where the portal would send the browser for the newest pairing. */
async function callbackOf(portal: EmulatorProcess): Promise<string> {
  const { answer } = await portal.ask('GET', '/_emulator/requests');
  const address = [...JSON.stringify(answer).matchAll(/http:\/\/127\.0\.0\.1:\d+(\/callback\/[\w-]+)/g)].at(-1)?.[1];
  if (address === undefined) throw new Error('no pairing asked for a redirect');
  return address;
}

/** Sends all of it, and reads to the end of the connection. */
function converse(socket: Socket, bytes: string): Promise<string> {
  let received = '';
  socket.setEncoding('latin1').on('data', (piece) => {
    received += piece;
  });
  socket.on('error', () => undefined);
  socket.end(Buffer.from(bytes));
  return new Promise((resolve, reject) => {
    socket.setTimeout(patient(12_000), () => {
      socket.destroy();
      reject(new Error(`the connection stays open; so far it said ${received.slice(0, 200)}`));
    });
    socket.once('close', () => resolve(received));
  });
}
