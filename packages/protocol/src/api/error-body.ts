import { ERROR_CODES, type ErrorCode } from '@dsec/std';
import Type, { type Static } from 'typebox';
import { mapOf, real, record, words } from '../names.ts';

const codes = Object.keys(ERROR_CODES) as [ErrorCode, ...ErrorCode[]];

export const ErrorBody = record(
  'ErrorBody',
  {
    code: words('ErrorCode', codes),
    message: Type.String({ maxLength: 4096, description: 'For people; may change.' }),
    retryable: Type.Boolean({ description: 'The same request may succeed later.' }),
    remedy: Type.String({ maxLength: 512, description: 'What the caller can do about it.' }),
    details: mapOf(
      '^[a-zA-Z][a-zA-Z0-9]{0,63}$',
      Type.Union([Type.String({ maxLength: 1024 }), real(Number.MIN_SAFE_INTEGER), Type.Boolean()]),
      32,
    ),
  },
  'The body of every response that is not a success.',
);
export type ErrorBody = Static<typeof ErrorBody>;
