import { Failure } from '../../core/failure.ts';
import type { RestoredState, StoredRows } from '../backup/backup-store.ts';
import type { Sealing } from '../keys/sealing.ts';
import type { SiteDatabase } from './database/database.ts';
import { isTimeout } from './database/errors.ts';
import type { Statements } from './database/sql.ts';
import type { SiteClocks } from './link/clocks.ts';
import { RESTORED } from './link/news.ts';
import type { SiteLink } from './link/site-link.ts';
import { RestoreWriter } from './restore.ts';
import { checkRows, readTables } from './tables/stored-rows.ts';

/** The advisory lock of a restore. */
const RESTORE_LOCK = 0x4c4b_0003;
/** How long a restore decrypts or encrypts rows between two statements at most, in ms. */
const MAX_PAUSE = 60_000;

/** What a {@link SiteBackup} works with. */
interface SiteBackupContext {
  readonly database: SiteDatabase;
  readonly link: SiteLink;
  readonly sealing: Sealing;
  readonly clocks: SiteClocks;
  readonly hubId: string;
}

/** Backups of a site, and their restore: see `BackupStore`. */
export class SiteBackup {
  readonly #context: SiteBackupContext;

  constructor(context: SiteBackupContext) {
    this.#context = context;
  }

  /** All rows as they are at one moment. @throws Failure `store_unreadable` */
  async readRows(): Promise<StoredRows> {
    const { database, sealing } = this.#context;
    return checkRows(await database.readAtOnce(readTables), sealing);
  }

  /** A value with its instants on this hub's boot clock. */
  translate<Value>(value: Value): Value {
    return this.#context.clocks.translate(value);
  }

  /** See `BackupStore.restore`. */
  async restore<Plan extends { readonly state: RestoredState }>(plan: (content: StoredRows) => Plan): Promise<Plan> {
    const { database, link, sealing, hubId } = this.#context;
    // The news are for no hub in particular: this one must hear of them if it does not learn that they were committed.
    const planned = await link.restoring((begin) =>
      database.write(
        [RESTORED],
        async (sql, id) => {
          await lockForRestore(sql);
          const decided = plan(await checkRows(await readTables(sql), sealing));
          await new RestoreWriter(sql, sealing).apply(decided.state, hubId);
          begin(id);
          return decided;
        },
        '',
      ),
    );
    if (planned === null) throw new Failure('unexpected', 'the restore was not written');
    return planned;
  }
}

/**
 * Excludes all other writers of what a restore reads and changes, until the end of the transaction.
 * @throws Failure `not_allowed` if another restore takes longer than the session's `lock_timeout`
 */
async function lockForRestore(sql: Statements): Promise<void> {
  try {
    await sql.run('SELECT pg_advisory_xact_lock($1, 0)', RESTORE_LOCK);
  } catch (error) {
    if (!isTimeout(error)) throw error;
    throw new Failure('not_allowed', 'another backup is being restored into the site', {
      advice: 'wait until that has ended, and look at its result first ("latchkey status")',
      cause: error,
      includesCause: true,
    });
  }
  // The hub decrypts and encrypts rows between two statements.
  await sql.run(`SET LOCAL idle_in_transaction_session_timeout = ${MAX_PAUSE}`);
  // In the order in which other transactions write them.
  await sql.run('LOCK TABLE connections, appliances, grants, sessions, settings IN SHARE ROW EXCLUSIVE MODE');
}
