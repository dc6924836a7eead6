/** Where bytes come from; undefined at the end. */
export interface ByteSource {
  read(): Promise<Uint8Array | undefined>;
}

export interface ByteSink {
  write(bytes: Uint8Array): Promise<void>;
  end(): void;
}

/** Something that listens on a port inside: serves one connection. */
export type PortServer = (source: ByteSource, sink: ByteSink) => Promise<void>;

export type PortTable = Readonly<Record<number, PortServer>>;

/** Sends back what comes, to its end. */
export const echoServer: PortServer = async (source, sink) => {
  for (let bytes = await source.read(); bytes !== undefined; bytes = await source.read()) {
    await sink.write(bytes);
  }
};
