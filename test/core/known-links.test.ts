import { describe, expect, test } from 'vitest';
import { linksOf, type PairingStep, withKnownLinks } from '../../src/core/pairings/pairing.ts';
import type { DeviceLink } from '../../src/core/portals/login-link.ts';
import { Secret } from '../../src/core/secret.ts';
import { instantAt, SAMPLE_LINK, samplePairing } from './samples.ts';

const SAMPLE_DEVICE_LINK: DeviceLink = {
  kind: 'device',
  authorizeUrl: 'https://portal.example/device',
  redirect: null,
  userCode: 'WDJB-MJHT',
  containsUserCode: false,
  deviceCode: new Secret('the-device-code'),
  verifier: null,
  interval: 5000,
  begun: instantAt(0),
  lifetime: 600_000,
};
const known = [SAMPLE_LINK, { ...SAMPLE_LINK, authorizeUrl: `${SAMPLE_LINK.authorizeUrl}-2` }];
const [first, second] = known.map((link) => ({ ...link }));
const unknown = { ...SAMPLE_LINK, authorizeUrl: `${SAMPLE_LINK.authorizeUrl}-3` };

describe('withKnownLinks()', () => {
  test('withKnownLinks() takes a device link that is polled less often by now as it is stored', () => {
    const link = { ...SAMPLE_DEVICE_LINK, interval: 10_000 };
    const result = withKnownLinks(samplePairing({ kind: 'waiting', link }), [SAMPLE_DEVICE_LINK]);
    expect(linksOf(result.step)).toEqual([link]);
  });

  test.each<[PairingStep, number[]]>([
    [{ kind: 'asking', earlier: [second ?? unknown, unknown] }, [1, -1]],
    [{ kind: 'waiting', link: first ?? unknown }, [0]],
    [{ kind: 'waiting', link: unknown, earlier: [first ?? unknown] }, [-1, 0]],
    [{ kind: 'exchanging', link: second ?? unknown, earlier: [first ?? unknown], since: instantAt(1) }, [1, 0]],
    [{ kind: 'ended', result: { kind: 'paired', scope: null } }, []],
  ])('gives a pairing that is $kind the link objects that the hub has, and changes nothing else', (step, places) => {
    const pairing = samplePairing(step);
    const result = withKnownLinks(pairing, known);
    expect(result).toEqual(pairing);
    expect(linksOf(result.step).map((link) => known.indexOf(link as never))).toEqual(places);
  });
});
