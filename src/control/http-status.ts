import type { FailureCode } from '../core/failure.ts';

/** The one table of what a failure is in HTTP, on the control socket. */
export const httpStatus: Readonly<Record<FailureCode, number>> = {
  appliance_exists: 409,
  appliance_unknown: 404,
  certificate_unusable: 500,
  config_invalid: 500,
  control_socket_taken: 500,
  hub_id_taken: 500,
  hub_not_running: 503,
  hub_stopping: 503,
  name_invalid: 400,
  not_allowed: 403,
  pairing_unknown: 404,
  portal_unknown: 400,
  portal_unreachable: 502,
  port_unavailable: 500,
  request_invalid: 400,
  scope_invalid: 400,
  state_dir_unusable: 500,
  store_key_wrong: 500,
  store_unreadable: 500,
  store_unwritable: 507,
  token_unavailable: 409,
  unexpected: 500,
};
