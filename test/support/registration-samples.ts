import type { PendingApproval } from '../../src/core/appliances/appliance-status.ts';

/** A waiting appliance as `status` reports it. */
export function waitingForApproval(changes: Partial<PendingApproval> = {}): PendingApproval {
  const since = '2031-05-05T06:00:00Z';
  return { since, softwareId: null, comparisonCode: 'KFD-WQX', address: '192.168.1.20', ...changes };
}
