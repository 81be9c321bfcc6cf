import type { FastifyRequest } from 'fastify';
import { describe, expect, it } from 'vitest';
import type { PairedConnection } from '../../src/core/lan-service.ts';
import type { PairingFailureReason } from '../../src/core/pairings/pairing.ts';
import type { PairingView } from '../../src/core/pairings/pairing-administration.ts';
import type { PairingBatch } from '../../src/core/pairings/pairing-batch.ts';
import { Secret } from '../../src/core/secret.ts';
import type { AuthenticatedRequest } from '../../src/page/page-context.ts';
import { pairingBatchPage } from '../../src/page/pairing/pairing-batch-page.ts';
import { renderPairing } from '../../src/page/pairing/pairing-page.ts';
import { de } from '../../src/page/texts/de.ts';
import { en, type Texts } from '../../src/page/texts/en.ts';

const NOW = Date.UTC(2031, 4, 5);

function shown(texts: Texts, view: Partial<PairingView & PairedConnection>): string {
  const session = { cookie: new Secret('a-cookie-of-nobody'), csrfToken: 'csrf', lifetime: 60 };
  const request = {
    context: { hubName: 'Hub', texts },
    session,
    request: { hostname: '127.0.0.1' } as Partial<FastifyRequest> as FastifyRequest,
  } as Partial<AuthenticatedRequest> as AuthenticatedRequest;
  const fullView = {
    id: 'one',
    connection: 'wallbox',
    title: 'Wallbox',
    users: [{ name: 'wallbox', title: 'Wallbox' }],
    own: true as const,
    scope: null,
    status: { event: 'connecting', problem: null, expiresIn: 900 } as const,
    lastFailure: null,
    portal: null,
    credentialLocation: { portal: 'home', secretFile: '/x/home.secret' },
    unconfirmed: [],
    batch: null,
    newestPairing: null,
    ...view,
  };
  return renderPairing(request, fullView, NOW);
}

const reasons = Object.keys(en.result.reasons) as PairingFailureReason[];

describe.each([
  ['English', en],
  ['German', de],
])('the page of a pairing in %s', (_, texts) => {
  it.each(reasons)(
    'the page of a pairing that failed as %s says why and what to do, and offers a fresh link',
    (reason) => {
      const html = shown(texts, { status: { event: 'failed', reason, message: 'In English' } });
      expect(html).toContain(texts.result.reasons[reason]);
      expect(Object.values(texts.pairing.nextSteps).some((next) => html.includes(next))).toBe(true);
      expect(html).not.toContain('In English');
      expect(html).toContain('action="/pairings/one/fresh"');
      expect(html).not.toContain('class="qr"');
    },
  );

  it('the button of the login names the portal if the hub has several, and a code of the portal has its own end', () => {
    const link = { event: 'waiting', authorizeUrl: 'https://portal.example/a', expiresIn: 290 } as const;
    expect(shown(texts, { status: link })).toContain(`>${texts.pairing.logIn}<`);
    expect(shown(texts, { status: link })).toContain(`${texts.pairing.linkExpires} <time`);
    const html = shown(texts, { status: { ...link, isRenewed: true }, portal: 'tado' });
    expect(html).toContain(`>${texts.pairing.logInAt('tado')}<`);
    expect(html).toContain(`${texts.pairing.newCode} <time`);
  });

  it.each([
    ['misconfigured', 'portals.home.client_id', '/x/home.secret', 'latchkey reload'],
    ['client_unknown', 'portals.home.client_id', 'latchkey reload', 'client_id'],
  ] as const)(
    'the page of a pairing that failed as %s names what to correct, and how the change takes effect',
    (reason, ...named) => {
      const html = shown(texts, { status: { event: 'failed', reason, message: 'In English' } });
      for (const words of named) expect(html).toContain(words);
    },
  );

  it('the page of a replaced pairing leads to the newer one, and offers no link of its own', () => {
    const report = { event: 'failed', reason: 'replaced', message: 'In English' } as const;
    const html = shown(texts, { status: report, newestPairing: 'two' });
    expect(html).toContain('href="/pairings/two"');
    expect(html).not.toContain('action=');
  });

  it('the page of a pairing distinguishes an unreachable portal from one that is being asked', () => {
    expect(shown(texts, {})).toContain(texts.pairing.connectingText);
    const away = shown(texts, { status: { event: 'connecting', problem: 'connect ECONNREFUSED', expiresIn: 1 } });
    expect(away).toContain(texts.pairing.portalUnreachable);
    expect(away).not.toContain('ECONNREFUSED');
  });

  it('the page of a pairing shows a button and no QR code if the login link is too long for one', () => {
    const link = (length: number) => 'https://portal.example/a?b'.padEnd(length, 'x');
    const pageWithLink = (length: number) =>
      shown(texts, { status: { event: 'waiting', authorizeUrl: link(length), expiresIn: 840 } });
    expect(pageWithLink(2953)).toContain('<svg class="qr"');
    for (const length of [2954, 8192]) {
      expect(pageWithLink(length)).toContain(`href="${link(length)}"`);
      expect(pageWithLink(length)).not.toContain('<svg class="qr"');
      expect(pageWithLink(length)).not.toContain(texts.pairing.scan.anywhere);
    }
  });

  it.each([
    ['https://portal.example/a', 'anywhere'],
    ['http://10.77.0.1:8491/a', 'home'],
    ['http://127.0.0.1:8491/a', 'machine'],
  ] as const)('the page of a pairing says beside the QR code of %s where it can be opened', (authorizeUrl, reach) => {
    const html = shown(texts, { status: { event: 'waiting', authorizeUrl, expiresIn: 840 } });
    expect(Object.values(texts.pairing.scan).filter((text) => html.includes(text))).toEqual([
      texts.pairing.scan[reach],
    ]);
  });

  it('the page of a login by redirect asks for a phone in the home network, where the hub can be reached', () => {
    const link = { event: 'waiting', authorizeUrl: 'https://portal.example/a', expiresIn: 840 } as const;
    const html = shown(texts, { status: { ...link, acceptsAddress: true } });
    expect(html).toContain(texts.pairing.scan.home);
    expect(html).toContain('href="/pairings/one/address"');
    expect(shown(texts, { status: link })).not.toContain('/address"');
  });

  it.each([
    ['https://portal.example/a?redirect_uri=http%3A%2F%2Flocalhost%3A8765%2Fback', 'page'],
    ['https://portal.example/a?redirect_uri=maker.app%3A%2F%2Fback', 'app'],
    ['https://portal.example/a?redirect_uri=http%3A%2F%2F127.0.0.1%3A8480%2Fcallback', 'hub'],
    ['https://portal.example/a?redirect_uri=https%3A%2F%2F127.0.0.1%3A8443%2Fcallback', 'hub'],
    ['https://portal.example/a?redirect_uri=https%3A%2F%2Fyou.example%2Frelay.html', 'hub'],
  ])(
    'the page of a login by redirect says beforehand if it ends on an error page or at an app (%s: %s)',
    (authorizeUrl, end) => {
      const isExpected = end !== 'hub';
      const status = { event: 'waiting', authorizeUrl, expiresIn: 840, acceptsAddress: true } as const;
      const html = shown(texts, { status });
      expect(html.includes(texts.pairing.paste.expected)).toBe(end === 'page');
      expect(html.includes(texts.pairing.paste.expectedApp('maker.app:'))).toBe(end === 'app');
      expect(html.includes(texts.pairing.paste.question)).toBe(!isExpected);
      expect(html.includes('target="_blank"')).toBe(isExpected);
      expect(html).toContain('href="/pairings/one/address"');
    },
  );

  it('the page of a pairing shows a code of the portal as text, and opens a tab if the login does not lead back to the hub', () => {
    const link = { event: 'waiting', authorizeUrl: 'https://portal.example/a', expiresIn: 840 } as const;
    const typed = shown(texts, { status: { ...link, userCode: '<b>12&3' } });
    expect(typed).toContain('>&#60;b&#62;12&#38;3</p>');
    expect(typed).toContain(texts.pairing.enterCode);
    const compared = shown(texts, { status: { ...link, userCode: '123', containsUserCode: true } });
    expect(compared).toContain(texts.pairing.compareCode);
    const redirected = shown(texts, { status: link });
    expect(redirected).not.toContain('user-code');
    expect(redirected).not.toContain('target="_blank"');
    expect(shown(texts, { status: { ...link, endsAtPortal: true } })).toContain('target="_blank"');
  });

  it('the page of a pairing has no buttons during the code exchange, and reports a lost answer', () => {
    const exchanging = shown(texts, { status: { event: 'exchanging', expiresIn: 1 } });
    expect(exchanging).toContain(texts.pairing.exchangingText);
    expect(exchanging).not.toContain('<button');
    const report = { event: 'waiting', authorizeUrl: 'https://portal.example/a?b=c&d=<e>', expiresIn: 840 } as const;
    const again = shown(texts, { status: report, lastFailure: 'answer_lost' });
    expect(again).toContain(texts.result.loginFailures.answer_lost);
    expect(again).toContain('href="https://portal.example/a?b&#61;c&#38;d&#61;&#60;e&#62;"');
    expect(again).toContain('2031-05-05T00:14:00.000Z');
  });
});

/** The page of a batch of connected logins as HTML, with some members of the batch. */
function shownBatch(texts: Texts, members: Partial<PairingBatch>): string {
  const session = { cookie: new Secret('a-cookie-of-nobody'), csrfToken: 'csrf', lifetime: 60 };
  const request = {
    context: { hubName: 'Hub', texts },
    session,
  } as Partial<AuthenticatedRequest> as AuthenticatedRequest;
  const lists = { connected: ['battery', 'wallbox'], connectedNow: 2, skipped: [], differentAccounts: [] };
  const batch = { id: 'one', titles: { battery: 'Battery' }, current: null, next: null, ...lists, ...members };
  return pairingBatchPage(request, batch, null, NOW).body;
}

it('the page of a pairing batch counts the logins that it has done, not those that were connected before', () => {
  const skipped = [{ name: 'stove', pairing: null, reason: 'not_begun' as const }];
  expect(shownBatch(en, { connectedNow: 1, skipped })).toContain('1 of 2 logins is done');
  expect(shownBatch(en, { connectedNow: 1 })).toContain('The login is done');
  for (const connectedNow of [0, 2]) expect(shownBatch(en, { connectedNow })).toContain('Both logins are done');
  expect(shownBatch(en, {})).toContain(en.pairing.connectedText);
  expect(shownBatch(en, { connected: [], connectedNow: 0 })).toContain(en.batch.noAppliances);
});

it('the page of a pairing batch warns of different accounts, and shows which appliance has which', () => {
  const texts = en;
  const differentAccounts = [
    { connection: 'battery', account: 'anna' },
    { connection: 'wallbox', account: '<b>guest</b>' },
  ];
  const html = shownBatch(texts, { differentAccounts });
  expect(html).toContain(texts.batch.differentAccounts);
  expect(html).toContain('<li>Battery: anna</li>');
  expect(html).toContain('<li>wallbox: &#60;b&#62;guest&#60;/b&#62;</li>');
  expect(shownBatch(texts, {})).not.toContain(texts.batch.differentAccounts);
});
