"""Published counts above a threshold: written as the Wikimedia Foundation documents them, and read as one release."""

import numpy as np
import pytest

import dpjax
from dpjax.adapters.pageviews import read_thresholded_counts

HEAD = "country,project,page_id,private_count"
LINES = [
    "Iceland,is.wikipedia,736,1201",
    "Iceland,is.wikipedia,9,455.5",
    "Iceland,en.wikipedia,9,612",
    "Norway,no.wikipedia,9,500",
]
KEYS = [("is.wikipedia", page) for page in ("9", "12", "736")] + [("en.wikipedia", "9")]
OPTIONS = {
    "mechanism": dpjax.Laplace(30.0),
    "threshold": 450,
    "keys": KEYS,
    "columns": ("project", "page_id"),
    "where": {"country": "Iceland"},
    "n": 2_600,
}


def write(folder, lines, head=HEAD):
    path = folder / "2022-1-1.csv"
    path.write_text("\n".join([head, *lines]) + "\n", encoding="utf-8")
    return path


def test_counts_are_read_by_key_and_the_others_stayed_below(tmp_path):
    read = read_thresholded_counts(write(tmp_path, LINES), **OPTIONS)
    assert read.keys == tuple(KEYS)
    assert read.release.n == 2_600
    np.testing.assert_allclose(read.release.value, [455.5, 450.0, 1201.0, 612.0], rtol=1e-6)


def test_the_law_is_that_of_noise_that_stayed_below_where_nothing_was_published(tmp_path):
    release = read_thresholded_counts(write(tmp_path, LINES), **OPTIONS).release
    counts = np.array([440.0, 430.0, 1210.0, 520.0])
    noise = dpjax.Laplace(30.0)
    published = noise.log_noise(np.array([15.5, -9.0, 92.0])).sum()
    np.testing.assert_allclose(release.log_density(counts), published + noise.log_cdf(np.array(20.0)), rtol=1e-5)


def test_keys_of_one_column_are_texts_and_columns_may_be_tabbed(tmp_path):
    path = write(tmp_path, ["a\t7", "b\t9"], "key\tcount")
    options = {"columns": ["key"], "count": "count", "delimiter": "\t", "where": None, "keys": ["a", "b", "c"]}
    read = read_thresholded_counts(path, **OPTIONS | options | {"threshold": 5, "n": 20})
    assert read.keys == (("a",), ("b",), ("c",))
    np.testing.assert_allclose(read.release.value, [7.0, 9.0, 5.0], rtol=1e-6)


def test_of_keys_without_names_the_number_is_enough(tmp_path):
    read = read_thresholded_counts(write(tmp_path, LINES), **OPTIONS | {"keys": 5})
    assert read.keys == (KEYS[2], KEYS[0], KEYS[3])
    np.testing.assert_allclose(read.release.value, [1201.0, 455.5, 612.0, 450.0, 450.0], rtol=1e-6)


def test_keys_that_nobody_has_may_be_left_out_from_the_start(tmp_path):
    release = read_thresholded_counts(write(tmp_path, LINES), **OPTIONS | {"only_present": True}).release
    assert release.log_density(np.array([440.0, 0.0, 1210.0, 520.0])) > release.log_density(
        np.array([440.0, 430.0, 1210.0, 520.0])
    )


@pytest.mark.parametrize(
    ("line", "options", "expected"),
    [
        ("", {"count": "gbc"}, r"path: given 2022-1-1.csv with columns .*; expected also \['gbc'\]"),
        ("", {"where": {"land": "Iceland"}}, r"expected also \['land'\]"),
        ("Iceland,is.wikipedia,12,many", {}, "path: given 'many' in line 6; expected a number"),
        ("Iceland,is.wikipedia,12", {}, "path: given 3 entries in line 6; expected 4, as in the header"),
        ("Iceland,is.wikipedia,12,449", {}, "values: given .*449.*; expected numbers of at least 450"),
        ("Iceland,is.wikipedia,9,700", {}, r"keys: given \('is.wikipedia', '9'\) more than once"),
        ("Iceland,is.wikipedia,13,700", {}, r"keys: given \('is.wikipedia', '13'\); expected keys among all_keys"),
        ("", {"keys": [("is.wikipedia", 9)]}, "keys: given .*; expected texts"),
    ],
)
def test_files_and_keys_that_do_not_fit_are_refused(tmp_path, line, options, expected):
    path = write(tmp_path, LINES + [line] * bool(line))
    with pytest.raises((TypeError, ValueError), match=expected):
        read_thresholded_counts(path, **OPTIONS | options)
