/// <reference lib="dom" />
import { offerCopying } from './copying.ts';
import { follow } from './following.ts';
import { keepTimes } from './times.ts';

keepTimes();
offerCopying();
follow();
