"""The public interface is what the file says: whoever changes it changes the file, and the changelog."""

from tests.tools import public_api


def test_public_names_and_signatures_are_those_on_file():
    on_file = public_api.FILE.read_text().splitlines()
    found = public_api.lines()
    changes = [f"gone: {line}" for line in on_file if line not in found]
    changes += [f"new: {line}" for line in found if line not in on_file]
    remedy = "Say so in CHANGELOG.md, keep what is gone for a version (CONTRIBUTING, Deprecation), and run make api."
    assert changes == [], remedy


def changed(first, *, second=2):
    del first, second


def test_a_changed_signature_is_seen():
    changed.__module__ = "dpjax"
    assert public_api.signature_of(changed) == "(first, *, second=2)"


class Known:
    def kept(self, first):
        del first

    def altered(self, first):
        del first


class Further(Known):
    def kept(self, first):
        del first

    def altered(self, first, second):
        del first, second

    def own(self):
        pass


def test_what_is_inherited_as_it_is_is_listed_once(monkeypatch):
    """At its base, where users read of it; a method with another signature is listed again."""
    for method in (*vars(Known).values(), *vars(Further).values()):
        if callable(method):
            monkeypatch.setattr(method, "__module__", "dpjax")
    assert public_api.own_members(Further, {Known, Further}) == ["altered(first, second)", "own()"]
    assert public_api.own_members(Further, {Further}) == ["altered(first, second)", "kept(first)", "own()"]
