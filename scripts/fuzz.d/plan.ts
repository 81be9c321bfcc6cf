/** A request before HTTP. */
export interface Plan {
  readonly origin: 'base' | 'frontend';
  readonly method: string;
  readonly path: string;
  readonly heads: readonly string[];
  readonly body?: string;
}

export const FORM = 'Content-Type: application/x-www-form-urlencoded';
export const JSON_TYPE = 'Content-Type: application/json';
