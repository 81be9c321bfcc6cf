/** What a judge counts: things that a good client of the portal never does. */
export interface Observations {
  /** Refresh tokens presented by their own client after they had been presented before. */
  refreshTokensRepeated: number;
  /** Authorization codes presented by their own client after they had been exchanged. */
  codesRepeated: number;
  /** Refreshes that began while another of the same grant was not yet answered. */
  overlappingRefreshes: number;
}
