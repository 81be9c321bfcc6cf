/** A member that goes with a kind of fault. */
export interface FaultField {
  readonly name: string;
  readonly label: string;
  /** `lines`: text of several lines; `headers`: one header a line. */
  readonly type: 'number' | 'text' | 'checkbox' | 'lines' | 'headers';
  /** What it holds at first; nothing: it may be left empty. */
  readonly value?: string;
  readonly min?: number;
  readonly max?: number;
  /** What stands in the field while it is empty. */
  readonly hint?: string;
}

/** A kind of fault as the API calls it, and as people do. */
export interface FaultKind {
  readonly label: string;
  /** What it strikes: requests to an endpoint, or an origin. */
  readonly strikes: 'endpoint' | 'origin';
  readonly fields: readonly FaultField[];
}

/** How often a fault strikes, of those that strike by themselves. */
export function oftenFields(strikes: FaultKind['strikes']): readonly FaultField[] {
  const each = strikes === 'endpoint' ? 'request' : 'connection';
  return [
    { name: 'times', label: 'How often (empty: always)', type: 'number', value: '1', min: 1 },
    { name: 'every', label: `Only every Nth ${each}`, type: 'number', min: 1, hint: '1' },
    { name: 'probability', label: 'Chance, from 0 to 1', type: 'number', min: 0, max: 1, hint: '1' },
  ];
}

const SECONDS: FaultField = { name: 'seconds', label: 'Seconds', type: 'number', value: '10', min: 0 };
const COMMIT: FaultField = { name: 'commit', label: 'Do what is asked for first', type: 'checkbox' };

function field(name: string, label: string, type: 'number' | 'text', value?: string, min?: number): FaultField {
  return { name, label, type, ...(value !== undefined && { value }), ...(min !== undefined && { min }) };
}

/** Of every kind of fault, in the order of the form. */
export const FAULT_KINDS: Readonly<Record<string, FaultKind>> = {
  status: {
    label: 'answer a status',
    strikes: 'endpoint',
    fields: [
      field('status', 'Status', 'number', '503', 200),
      { name: 'headers', label: 'Headers, one a line', type: 'headers', hint: 'Retry-After: 30' },
      { name: 'body', label: 'Body', type: 'lines', hint: '{"error":"server_error"}' },
      COMMIT,
    ],
  },
  commit_then_drop: { label: 'do it, then lose the answer', strikes: 'endpoint', fields: [] },
  reset_before: { label: 'reset the connection, undone', strikes: 'endpoint', fields: [] },
  delay: { label: 'answer late', strikes: 'endpoint', fields: [SECONDS, COMMIT] },
  hang: { label: 'never answer', strikes: 'endpoint', fields: [COMMIT] },
  truncate: {
    label: 'cut the answer short',
    strikes: 'endpoint',
    fields: [field('bytes', 'Bytes of it', 'number', '20', 0)],
  },
  slow_body: {
    label: 'answer slowly',
    strikes: 'endpoint',
    fields: [field('bytes_per_second', 'Bytes a second', 'number', '10', 1)],
  },
  not_json: { label: 'a web page for JSON', strikes: 'endpoint', fields: [COMMIT] },
  content_type: {
    label: 'another content type',
    strikes: 'endpoint',
    fields: [field('content_type', 'Content type', 'text', 'text/plain')],
  },
  redirect: {
    label: 'redirect',
    strikes: 'endpoint',
    fields: [field('location', 'Location', 'text', 'http://127.0.0.1/'), COMMIT],
  },
  oversize: {
    label: 'a huge answer',
    strikes: 'endpoint',
    fields: [field('bytes', 'Bytes', 'number', '10000000', 1)],
  },
  wrong_date: {
    label: 'a wrong Date header',
    strikes: 'endpoint',
    fields: [field('offset', 'Seconds ahead', 'number', '86400')],
  },
  tls_failure: { label: 'fail the TLS handshake', strikes: 'origin', fields: [] },
  origin_down: { label: 'take an origin down', strikes: 'origin', fields: [SECONDS] },
};
