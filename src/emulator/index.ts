export { type Emulator, type GrantView, startEmulator } from './emulator.ts';
export { FaultError, type FaultOptions, type FaultView } from './faults/options.ts';
export { parseFault } from './faults/wire.ts';
export type {
  EarlyRefreshes,
  FailedAuthentications,
  Findings,
  GrantFinding,
  PollFindings,
} from './findings.ts';
export type { Poll } from './helper-runs.ts';
export type { Endpoint } from './http/endpoint.ts';
export type { LoggedRequest } from './http/logged-request.ts';
export type { SecretKind } from './issued-secrets.ts';
export { LoginError, type LoginRequest, type LoginResult } from './login.ts';
export type { Observations } from './observations.ts';
export { OptionError } from './settings/check.ts';
export type {
  ClientOptions,
  EmulatorClock,
  EmulatorOptions,
  Exchange,
  Interceptor,
  UserOptions,
} from './settings/options.ts';
export type { Switches, SwitchOptions } from './settings/switches.ts';
export { StateFileError } from './state-file-error.ts';
export { ClockError, type ClockView } from './virtual-clock.ts';
export type { WaitingLogin } from './waiting-logins.ts';
