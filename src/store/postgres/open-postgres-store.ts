import { randomBytes } from 'node:crypto';
import type { Clock, Timers } from '../../core/clock.ts';
import { Failure } from '../../core/failure.ts';
import type { Random } from '../../core/random.ts';
import { KEY_CHECK_SETTING, SITE_ID_SETTING } from '../../core/site.ts';
import type { Sealing } from '../keys/sealing.ts';
import { nullIfDamaged } from '../rows/schemas.ts';
import { readSetting, type SettingRow } from '../rows/setting-row.ts';
import type { DatabaseAddress } from './database/connections.ts';
import { SiteDatabase } from './database/database.ts';
import { startFailure } from './database/errors.ts';
import { SiteConnection } from './database/site-connection.ts';
import { inTransaction, type Statements } from './database/sql.ts';
import { SiteClocks } from './link/clocks.ts';
import { SiteLink } from './link/site-link.ts';
import { checkServer } from './link/site-state.ts';
import { PostgresStore } from './postgres-store.ts';
import { prepareSiteSchema } from './schema.ts';
import { SiteGrants } from './tables/grants.ts';
import { SiteSettings } from './tables/settings.ts';

/** How a hub opens the store of its site. */
interface PostgresStoreOptions {
  readonly address: DatabaseAddress;
  readonly hubId: string;
  /** The hub's name, as configured. */
  readonly hubName: string;
  readonly sealing: Sealing;
  readonly clock: Clock;
  readonly timers: Timers;
  readonly random: Pick<Random, 'uuid'>;
}

/**
 * Opens the store of a site, or creates it. From then on no other hub of the site starts until
 * `startupDone`.
 * @throws Failure `database_unavailable` if it may work later; `database_unusable`, `store_schema_unknown`,
 * `store_key_wrong` or `store_locked` if a person has to do something
 */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<PostgresStore> {
  const { hubId, sealing, clock, timers, address } = options;
  await using parts = new AsyncDisposableStack();
  try {
    const database = parts.use(new SiteDatabase(options));
    const clocks = new SiteClocks(clock, (work) => database.read(work));
    const events = Promise.withResolvers<SiteLink['events']>();
    const connection = await SiteConnection.open(options, {
      onNotification: () => void events.promise.then((link) => link.onNotification()),
      onLost: (error) => void events.promise.then((link) => link.onLost(error)),
    });
    const opening = parts.use(new AsyncDisposableStack());
    opening.use(connection);
    await connection.lockStartup(clock, timers);
    const server = await prepare(options, database, clocks);
    opening.move();
    const settings = new SiteSettings(database, sealing, hubId);
    await settings.replace({ [KEY_CHECK_SETTING]: null }, { [KEY_CHECK_SETTING]: 'ok' });
    await settings.replace(
      { [SITE_ID_SETTING]: null },
      { [SITE_ID_SETTING]: `site-${randomBytes(4).toString('hex')}` },
    );
    const siteId = (await settings.get(SITE_ID_SETTING)) ?? '';
    // Not earlier: from now on other hubs have the time to write the outcomes of their attempts.
    const grants = new SiteGrants({ database, sealing, clocks, clock, hubId });
    const onReturning = () => grants.onReturning();
    const link = parts.use(new SiteLink({ ...options, siteId, database, clocks, onReturning }, connection, server));
    events.resolve(link.events);
    await link.start();
    const store = new PostgresStore({ database, link, sealing, clocks, grants, settings, hubId });
    parts.move();
    return store;
  } catch (error) {
    throw startFailure(error, address.description);
  }
}

/** Prepares the database for this hub. @returns the server, see {@link checkServer} */
function prepare(
  { hubId, sealing }: PostgresStoreOptions,
  database: SiteDatabase,
  clocks: SiteClocks,
): Promise<string> {
  return database.run(async (sql) => {
    await inTransaction(sql, prepareSiteSchema);
    await checkKey(sql, sealing);
    const { server } = await inTransaction(sql, () => checkServer(sql, hubId, null));
    await clocks.synchronize(sql);
    return server;
  });
}

/** @throws Failure `store_key_wrong` */
async function checkKey(sql: Statements, sealing: Sealing): Promise<void> {
  const [row] = await sql.all<SettingRow>('SELECT name, sealed FROM settings WHERE name = $1', KEY_CHECK_SETTING);
  if (row === undefined || nullIfDamaged(() => readSetting(row, sealing)) !== null) return;
  throw new Failure(
    'store_key_wrong',
    "this hub's store.key is not the one of its site: copy store.key from another hub of the site",
  );
}
