"""The division of a corpus among the workers of a cluster."""

from official_bert.engines import cluster_job


def test_pieces_are_found_by_place_and_by_number():
    """`piece_of` is the inverse of the division of pairs in `shards`."""
    for num_pairs in (1, 5, 12, 1000):
        for num_pieces in (1, 3, 7, 40):
            layout = cluster_job.Layout({}, 1, num_pairs, num_pieces)
            found = [layout.piece_of(place) for place in range(num_pairs)]
            for piece in range(num_pieces):
                first, end = layout.first_pair(piece), layout.first_pair(piece + 1)
                assert found.count(piece) == end - first
                assert set(found[first:end]) <= {piece}
