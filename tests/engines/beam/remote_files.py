"""A file system that only Beam knows: `stand-in://…` is a local folder."""

from apache_beam.io.localfilesystem import LocalFileSystem

SCHEME = "stand-in://"


class StandInFileSystem(LocalFileSystem):
    """Like a bucket: names with slashes, no working folder."""

    root = None

    @classmethod
    def scheme(cls):
        return "stand-in"

    def _local(self, path):
        assert path.startswith(SCHEME), path
        return f"{self.root}/{path.removeprefix(SCHEME)}"

    def join(self, basepath, *paths):
        return "/".join([basepath.rstrip("/"), *paths])

    def split(self, path):
        return tuple(path.rsplit("/", 1))

    def mkdirs(self, path):
        super().mkdirs(self._local(path))

    def create(self, path, *arguments, **options):
        return super().create(self._local(path), *arguments, **options)

    def open(self, path, *arguments, **options):
        return super().open(self._local(path), *arguments, **options)

    def exists(self, path):
        return super().exists(self._local(path))

    def match(self, patterns, limits=None):
        local = LocalFileSystem(pipeline_options=None)
        results = local.match(list(map(self._local, patterns)), limits)
        for result in results:
            for file in result.metadata_list:
                file.path = f"{SCHEME}{file.path.removeprefix(f'{self.root}/')}"
        return results

    def rename(self, sources, targets):
        super().rename(list(map(self._local, sources)), list(map(self._local, targets)))

    def delete(self, paths):
        local = LocalFileSystem(pipeline_options=None)
        local.delete([self._local(path).rstrip("/") for path in paths])
