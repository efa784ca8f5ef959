"""The used parts of Spark's tables, in this process's memory."""

import collections

import pyarrow as pa


class Context:
    defaultParallelism = 2


class Session:
    """Replaces a `SparkSession`; `shuffled` counts the rows that move."""

    sparkContext = Context()

    def __init__(self):
        self.conf = self
        self.values = {}
        self.shuffled = 0

    def set(self, name, value):
        self.values[name] = value

    def range(self, start, end, step, tasks):
        schema = pa.schema([("id", pa.int64())])
        rows = [(number,) for number in range(start, end, step)]
        size = -(-len(rows) // tasks)
        parts = [rows[first : first + size] for first in range(0, len(rows), size)]
        return Table(self, schema, parts)


class Table:
    def __init__(self, session, schema, parts):
        self.session, self.schema, self.parts = session, schema, parts

    def mapInArrow(self, function, schema):  # noqa: N802 # Spark's name.
        name = "spark.sql.execution.arrow.maxRecordsPerBatch"
        size = int(self.session.values[name])
        types = {"long": pa.int64(), "binary": pa.binary()}
        columns = [column.split() for column in schema.split(", ")]
        made = pa.schema([(name, types[kind]) for name, kind in columns])
        parts = []
        for part in self.parts:
            batches = (
                pa.RecordBatch.from_arrays(
                    [
                        pa.array(values, field.type)
                        for values, field in zip(
                            zip(*part[first : first + size], strict=True),
                            self.schema,
                            strict=True,
                        )
                    ],
                    schema=self.schema,
                )
                for first in range(0, len(part), size)
            )
            parts.append(
                [
                    row
                    for batch in function(batches)
                    for row in zip(*(c.to_pylist() for c in batch.columns), strict=True)
                ]
            )
        return Table(self.session, made, parts)

    def _key(self, names):
        indices = [self.schema.get_field_index(name) for name in names]
        return lambda row: tuple(row[index] for index in indices)

    def repartition(self, tasks, *names):
        key = self._key(names)
        parts = [[] for _ in range(tasks)]
        # Spark does not keep the order either.
        for row in reversed([row for part in self.parts for row in part]):
            parts[hash(key(row)) % tasks].append(row)
            self.session.shuffled += 1
        return Table(self.session, self.schema, parts)

    def sortWithinPartitions(self, *names):  # noqa: N802
        key = self._key(names)
        parts = [sorted(part, key=key) for part in self.parts]
        return Table(self.session, self.schema, parts)

    def groupBy(self, name):  # noqa: N802
        key = self._key([name])
        sums = collections.Counter()
        for part in self.parts:
            for row in part:
                sums[key(row)] += row[1]
        self.sums = [(*key, count) for key, count in sums.items()]
        return self

    def sum(self, _):
        return Table(self.session, self.schema, [self.sums])

    def collect(self):
        return [row for part in self.parts for row in part]

    def toLocalIterator(self):  # noqa: N802
        return iter(self.collect())
