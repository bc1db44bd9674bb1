/** The settings of a metric of this package for its constructor in prom-client. */
export declare function named(name: string, help: string): {
    name: string;
    help: string;
    registers: [];
};
