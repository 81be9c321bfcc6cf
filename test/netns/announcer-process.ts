import { join } from 'node:path';
import type { Host, Process } from '../support/netns.ts';

/** What `announce.ts` announces by default. */
export const DEFAULT_ANNOUNCEMENT = {
  instanceName: 'Cellar hub',
  id: '4f2a9c',
  httpsPort: 8443,
  txt: { v: '0.1.0', http: '8480', capk: 'kq2Tq0vT0X-uSxcAM51CMmLPbFHax41fREKDUrARbDZ' },
  setting: 'auto',
  repeats: true,
  copies: false,
};

/** Announces a hub on this host. */
export function announceOn(host: Host, changes: Partial<typeof DEFAULT_ANNOUNCEMENT> = {}): Process {
  const script = join(import.meta.dirname, 'announce.ts');
  return host.spawn(process.execPath, [script, JSON.stringify({ ...DEFAULT_ANNOUNCEMENT, ...changes })]);
}

/** Changes what is announced. */
export function changeAnnouncement(announcing: Process, changes: Partial<typeof DEFAULT_ANNOUNCEMENT> = {}): void {
  announcing.child.stdin?.write(`${JSON.stringify(changes)}\n`);
}

/**
 * Events of an announcer: it has started (`started`), is announced (`ready`), has other names (`renamed`) or none
 * (`lost`), or checks whether another hub is a copy of it (`checked`).
 */
export interface AnnouncerEvent {
  readonly event: string;
  readonly name?: string;
  readonly host?: string;
  readonly claimed?: string | null;
  readonly address?: string;
  readonly port?: number;
  readonly missing?: string | null;
  readonly message?: string;
  /** Seconds on CLOCK_MONOTONIC. */
  readonly at: number;
}

/** The first event of this kind. */
export function waitForAnnouncerEvent(
  announcing: Process,
  event: 'started' | 'ready' | 'renamed' | 'lost' | 'checked',
): Promise<AnnouncerEvent> {
  return announcing.line((line) => {
    const parsed: AnnouncerEvent = JSON.parse(line);
    return parsed.event === event ? parsed : undefined;
  });
}

/** All events so far. */
export function announcerEvents({ output }: Process): readonly AnnouncerEvent[] {
  const lines = output.split('\n').filter((line) => line.startsWith('{"event"'));
  return lines.map((line): AnnouncerEvent => JSON.parse(line));
}
