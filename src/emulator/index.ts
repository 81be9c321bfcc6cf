export { type Emulator, type GrantView, startEmulator } from './emulator.ts';
export { FaultError, parseFault } from './faults/fault-body.ts';
export type { FaultOptions, FaultView } from './faults/kinds.ts';
export type { Endpoint, LoggedRequest } from './http/logged-request.ts';
export type { Observations } from './oauth/client-audit.ts';
export type { WaitingDevice } from './oauth/device-logins.ts';
export type {
  EarlyRefreshes,
  FailedAuthentications,
  FastPolls,
  Findings,
  GrantFinding,
  PollFindings,
} from './oauth/findings.ts';
export type { Poll, WaitingLogin } from './oauth/helper-flows.ts';
export type { SecretKind } from './oauth/issued-secrets.ts';
export type { DeviceApproval } from './oauth/login.ts';
export { LoginError, type LoginRequest, type LoginResult } from './oauth/login.ts';
export type {
  ClientOptions,
  EmulatorClock,
  EmulatorOptions,
  InterceptedRequest,
  Interceptor,
  UserOptions,
} from './options.ts';
export type { SettingOptions, Settings } from './settings/settings.ts';
export { parseClient, parseUser } from './settings/start-options.ts';
export { OptionError } from './settings/validation.ts';
export { StateFileError } from './state-file.ts';
export { ClockError, type ClockView } from './virtual-clock.ts';
