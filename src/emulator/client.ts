/** A registered client, all defaults filled in. */
export interface Client {
  readonly id: string;
  readonly secret: string;
  readonly name: string;
  readonly redirectUrl: 'accept' | 'refuse';
  readonly redirectUris: readonly string[];
}
