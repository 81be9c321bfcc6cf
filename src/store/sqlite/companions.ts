import type { PendingUsage } from '../../core/appliances/usage.ts';
import type { PendingHistory } from '../../core/reports/history.ts';
import type { HistoryTable } from './tables/history-table.ts';
import type { UsageTable } from './tables/usage-table.ts';

/** Something that waits for another write of its connection, because it is not worth its own transaction. */
export interface Companion {
  /** Writes it; call it in a transaction. */
  write(): void;
  /** Call this when that transaction has ended, before it is synced: what comes later is another companion. */
  markWritten(): void;
}

/** The pending history of each connection, and the pending usage of its appliances. */
export class Companions {
  readonly #history: HistoryTable;
  readonly #usage: UsageTable;
  historySource: PendingHistory | null = null;
  usageSource: PendingUsage | null = null;

  constructor(history: HistoryTable, usage: UsageTable) {
    this.#history = history;
    this.#usage = usage;
  }

  /** What can be written now together with something of this connection. @param connection its id */
  of(connection: string): readonly Companion[] {
    const { historySource, usageSource } = this;
    const companions: Companion[] = [];
    const lines = historySource?.pending(connection) ?? [];
    if (lines.length > 0) {
      companions.push({
        write: () => this.#history.add(connection, lines),
        markWritten: () => historySource?.markWritten(connection),
      });
    }
    const usage = usageSource?.pending(connection);
    if (usage !== undefined && usage.size > 0) {
      companions.push({
        write: () => this.#usage.save(usage),
        markWritten: () => usageSource?.markWritten(connection),
      });
    }
    return companions;
  }
}
