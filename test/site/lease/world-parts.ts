import type { ModelDatabase } from './model-database.ts';
import type { HubName, ModelHub } from './model-hub.ts';
import type { ModelPortal } from './model-portal.ts';
import type { LeaseScenario } from './scenario.ts';

/** What takes part in an execution. */
export interface WorldParts {
  readonly scenario: LeaseScenario;
  readonly database: ModelDatabase;
  readonly portal: ModelPortal;
  /** How many faults there were so far. */
  readonly faults: number;
  readonly hubs: Readonly<Record<HubName, ModelHub>>;
}
