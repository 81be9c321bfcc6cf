import { describe, expect, test } from 'vitest';
import type { PairingFailureReason } from '../../src/core/pairings/pairing.ts';
import { isFixedByNewPairing, pairingMessage } from '../../src/page/callback/pairing-messages.ts';
import { de } from '../../src/page/texts/de.ts';
import { en } from '../../src/page/texts/en.ts';
import { userCodeConfirmationPage } from '../../src/page/user-code/user-code-pages.ts';
import { named } from '../control/status-samples.ts';
import { instantAt, SAMPLE_LINK, samplePairing } from '../core/samples.ts';

const WALLBOX = {
  connection: 'wallbox',
  title: 'Wallbox',
  users: [{ name: 'wallbox', title: 'Wallbox' }],
  own: true,
} as const;
const device = { appliance: 'an-appliance', codeHash: 'a-hash', userCode: 'WDJB-MJHT' };
const waiting = { kind: 'waiting', link: SAMPLE_LINK } as const;
const failed = (reason: PairingFailureReason) => ({ kind: 'ended', result: { kind: 'failed', reason } }) as const;

describe('the message of a failed pairing', () => {
  test.each([
    ['refused_by_user', 'or the portal refused it. '],
    ['expired', 'The time for this login has expired. '],
    ['portal_rejected', 'If this happens again, check the hub’s configuration.'],
  ] as const)(
    'the message of a pairing that failed as %s says to start again at the hub or on the appliance',
    (reason, text) => {
      const ofInstaller = pairingMessage(samplePairing(failed(reason)), WALLBOX, en);
      expect(ofInstaller.text).toContain(text);
      expect(ofInstaller.text).toContain('try again on the hub’s page');
      expect(isFixedByNewPairing(samplePairing(failed(reason)))).toBe(true);
      const ofAppliance = pairingMessage(samplePairing(failed(reason), { device }), WALLBOX, en);
      expect(ofAppliance.text).toContain(text);
      expect(ofAppliance.text).toContain('on the appliance');
    },
  );

  test('the message of a pairing that was replaced or misconfigured does not suggest to start again', () => {
    for (const reason of ['replaced', 'misconfigured'] as const) {
      const pairing = samplePairing(failed(reason));
      expect(isFixedByNewPairing(pairing)).toBe(false);
      expect(pairingMessage(pairing, WALLBOX, en).text).not.toMatch(/try again/i);
    }
  });
});

describe('the message about a login that several appliances share', () => {
  const users = [{ name: 'thermostat', title: 'Thermostat' }, ...named('dashboard')];
  const NETATMO = { connection: 'netatmo', title: 'Netatmo', users };
  const paired = samplePairing({ kind: 'ended', result: { kind: 'paired', scope: null } });

  test('the message names the appliances, some of them if there are many, and then the login', () => {
    expect(pairingMessage(paired, NETATMO, en)).toMatchObject({
      heading: 'Thermostat and dashboard are connected',
      text: expect.stringContaining('This is about the login “Netatmo”. You can close'),
    });
    const many = named('a', 'b', 'c', 'd', 'e', 'f');
    expect(pairingMessage(paired, { ...NETATMO, users: many }, de).heading).toBe(
      'a, b, c und 3 weitere sind verbunden',
    );
  });

  test('the message names the login if no appliance uses it', () => {
    const unused = { ...NETATMO, users: [] };
    expect(pairingMessage(paired, unused, en)).toMatchObject({ heading: 'Login “Netatmo” is connected' });
    expect(pairingMessage(samplePairing(failed('expired')), unused, en)).toMatchObject({
      heading: 'Login “Netatmo” is not connected',
    });
  });
});

describe('the message of a lost answer', () => {
  const lost = { lastFailure: 'answer_lost' } as const;

  test('the message reports a lost answer while there is no link, and where to find the next one', () => {
    expect(pairingMessage(samplePairing({ kind: 'asking' }, lost), WALLBOX, en).text).toContain(
      'The hub makes a new link',
    );
    const text = pairingMessage(samplePairing({ kind: 'asking' }, { ...lost, device }), WALLBOX, en).text;
    expect(text).toContain('Open the login link again');
    expect(text).not.toContain('new link');
  });

  test('the message does not mention a lost answer while the next code is exchanged', () => {
    const exchanging = { kind: 'exchanging', link: SAMPLE_LINK, since: instantAt(1) } as const;
    expect(pairingMessage(samplePairing(exchanging, lost), WALLBOX, en)).toMatchObject({
      severity: 'waiting',
      reloadAfter: 5,
    });
  });
});

describe('the confirmation page for a user code', () => {
  const [appliance] = WALLBOX.users;
  const { own: _, ...shared } = { ...WALLBOX, appliance, isApprovable: false, needsInstaller: false };
  const body = (scope: string | null, lastFailure: 'answer_lost' | 'code_refused' | null = null) =>
    userCodeConfirmationPage({ ...shared, pairing: samplePairing(waiting, { device, scope, lastFailure }) }, en).body;

  test('the confirmation page for a user code names the login, if that is not the appliance’s own', () => {
    const found = { ...shared, title: 'Heating', pairing: samplePairing(waiting, { device }) };
    expect(userCodeConfirmationPage(found, en).heading).toBe('Connect Wallbox with the login “Heating”?');
    expect(userCodeConfirmationPage({ ...found, own: true }, en).heading).toBe('Connect Wallbox?');
  });

  test('the confirmation page for a user code names the requested permissions in plain words', () => {
    expect(body('A')).toContain('these permissions: <b>A</b>.');
    expect(body('A B')).toContain('these permissions: <b>A</b> and <b>B</b>.');
    expect(body('A B <i>')).toContain('these permissions: <b>A</b>, <b>B</b> and <b>&#60;i&#62;</b>.');
    expect(body(null)).toContain('The portal decides what the appliance may do.');
  });

  test('the confirmation page for a user code explains why another login is needed', () => {
    expect(body('A')).not.toContain('class="problem"');
    expect(body('A', 'code_refused')).toContain('no longer accepted this login');
    expect(body('A', 'answer_lost')).toContain('answer was lost');
  });
});
