export * from './aether-frames.ts';
export * from './frame.ts';
export * from './frame-decoder.ts';
export * from './message-codec.ts';
export * from './names.ts';
export * from './ticket.ts';
export * from './validate.ts';
export * from './wire-fields.ts';
