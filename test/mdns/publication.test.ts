import { expect, it } from 'vitest';
import { Publication } from '../../src/mdns/announcing/publication.ts';
import { type ServiceDescription, uniqueRecords } from '../../src/mdns/records/records.ts';
import type { MdnsLink } from '../../src/mdns/sockets/mdns-link.ts';
import { FakeTime } from '../support/fake-time.ts';

const LINK: MdnsLink = {
  serve() {},
  async respond() {},
  async probe() {},
  onRecords: () => () => undefined,
  async [Symbol.asyncDispose]() {},
};

const named = (host: string): ServiceDescription => ({
  instanceName: 'Cellar hub',
  id: 'aa11',
  host,
  httpsPort: 8443,
  txt: {},
  addresses: [],
});

it('the hub recognises its own records for ten seconds after it has taken another name', async () => {
  const time = new FakeTime();
  const publication = new Publication(time, () => undefined);
  const [before, after] = [named('aa11.local'), named('aa11-2.local')];
  const hasAnnounced = (service: ServiceDescription) =>
    uniqueRecords(service).some((record) => record.type === 'SRV' && publication.hasAnnounced(record));
  await publication.announce(LINK, before);
  expect([hasAnnounced(before), hasAnnounced(after)]).toEqual([true, false]);
  await publication.announce(LINK, after);
  await publication.defend(LINK);
  await time.pass(9000);
  expect([hasAnnounced(before), hasAnnounced(after)]).toEqual([true, true]);
  await time.pass(2000);
  expect([hasAnnounced(before), hasAnnounced(after)]).toEqual([false, true]);
});
