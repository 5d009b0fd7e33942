"""What accounts with few rights get, and what they do not."""

import json
from typing import Any
from urllib.parse import quote

import pytest
from running import RBAC, Client, Running, rule

SECRETS = "/api/v1/namespaces/safe/secrets"


@pytest.fixture(scope="module")
def admin(server: Running) -> Client:
    found = server.client()
    found.ask("POST", "/api/v1/namespaces", {"metadata": {"name": "safe"}})
    for name in ("one", "two", "three"):
        found.ask("POST", SECRETS, {"metadata": {"name": name}})
    return found


def names(admin: Client) -> list[str]:
    return [each["metadata"]["name"] for each in admin.get(SECRETS)[1]["items"]]


def watched(client: Client, path: str) -> list[str]:
    code, text = client.get(path)
    assert code == 200
    lines = text.splitlines() if isinstance(text, str) else [json.dumps(text)]
    return [json.loads(line)["object"]["metadata"]["name"] for line in lines]


def test_a_watch_of_one_name_shows_that_name_whatever_the_field_selector(server: Running, admin: Client) -> None:
    only = [rule("secrets", "get watch", resourceNames=["one"])]
    client = server.account("safe", "only-one", only)
    path = f"{SECRETS}/one?watch=1&timeoutSeconds=1"

    assert watched(client, path) == ["one"]
    assert watched(client, f"{path}&fieldSelector={quote('metadata.name!=zzz')}") == ["one"]
    code, status = client.get(f"{path}&fieldSelector={quote('metadata.name!=zzz' + chr(92))}")
    assert (code, status["reason"]) == (400, "BadRequest")
    assert client.get(f"{SECRETS}?watch=1")[0] == 403


def test_below_watch_there_is_only_get(server: Running, admin: Client) -> None:
    everything = [rule("secrets", "*", resourceNames=["one"])]
    client = server.account("safe", "all-of-one", everything)
    before = names(admin)

    for method in ("DELETE", "POST", "PUT", "PATCH", "HEAD"):
        for who in (client, admin):
            assert who.ask(method, "/api/v1/watch/namespaces/safe/secrets/one", {})[0] == 405
    assert names(admin) == before
    assert watched(client, "/api/v1/watch/namespaces/safe/secrets/one?timeoutSeconds=1") == ["one"]


def bound_to(role: str, name: str, namespace: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    subjects = [{"kind": "ServiceAccount", "name": name, "namespace": namespace}]
    return {"metadata": {"name": f"{name}-more"}, "roleRef": reference, "subjects": subjects}


EVERYTHING = {"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}
GROUP = "rbac.authorization.k8s.io"


def test_who_may_write_bindings_binds_only_what_it_has(server: Running) -> None:
    rules = [rule("clusterrolebindings rolebindings", "create", GROUP), rule("pods", "get list")]
    client = server.account("grant", "binder", rules, everywhere=True)
    server.client().ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "pods"}, "rules": [rule("pods", "get")]})

    for where in (f"{RBAC}/clusterrolebindings", f"{RBAC}/namespaces/grant/rolebindings"):
        code, status = client.ask("POST", where, bound_to("cluster-admin", "binder", "grant"))
        assert (code, status["reason"]) == (403, "Forbidden")
        assert "attempting to grant RBAC permissions not currently held" in status["message"]
        assert client.ask("POST", where, bound_to("no-such-role", "binder", "grant"))[0] == 404
        assert client.ask("POST", where, bound_to("pods", "binder", "grant"))[0] == 201
    assert client.get("/api/v1/secrets")[0] == 403


def test_the_verb_bind_lets_bind_a_role_and_no_other(server: Running) -> None:
    rules = [rule("rolebindings", "create", GROUP), rule("clusterroles", "bind", GROUP, resourceNames=["view"])]
    client = server.account("grant", "friend", rules)
    where = f"{RBAC}/namespaces/grant/rolebindings"

    assert client.ask("POST", where, bound_to("edit", "friend", "grant"))[0] == 403
    assert client.ask("POST", where, bound_to("view", "friend", "grant"))[0] == 201
    assert client.get("/api/v1/namespaces/grant/pods")[0] == 200


@pytest.mark.parametrize(
    "media_type", ["application/merge-patch+json", "application/json", "application/apply-patch+yaml"]
)
def test_who_may_write_roles_gives_itself_nothing(server: Running, media_type: str) -> None:
    name = "author-" + media_type[12:17].strip("+")
    rules = [rule("clusterroles", "create update patch get", GROUP)]
    client = server.account("grant", name, rules, everywhere=True)
    path = f"{RBAC}/clusterroles/grant-{name}"
    _, role = client.get(path)
    more = {"apiVersion": f"{GROUP}/v1", "kind": "ClusterRole", "metadata": {"name": role["metadata"]["name"]}}
    method, query = ("PUT", "") if media_type == "application/json" else ("PATCH", "")
    if media_type.endswith("yaml"):
        query = "?fieldManager=me&force=true"

    code, status = client.ask(method, path + query, {**more, "rules": [EVERYTHING]}, content_type=media_type)
    assert (code, status["reason"]) == (403, "Forbidden")
    aggregated = {**more, "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]}, "rules": rules}
    assert client.ask(method, path + query, aggregated, content_type=media_type)[0] == 403
    new = {"metadata": {"name": f"new-{name}"}, "rules": [EVERYTHING]}
    assert client.ask("POST", f"{RBAC}/clusterroles", new)[0] == 403
    fewer = {**more, "rules": [rule("clusterroles", "patch update get", GROUP)]}
    assert client.ask(method, path + query, fewer, content_type=media_type)[0] == 200


def test_the_verb_escalate_lets_write_any_role(server: Running) -> None:
    client = server.account("grant", "trusted", [rule("clusterroles", "create escalate", GROUP)], everywhere=True)

    new = {"metadata": {"name": "made-by-trusted"}, "rules": [EVERYTHING]}
    assert client.ask("POST", f"{RBAC}/clusterroles", new)[0] == 201


def test_labels_of_a_role_may_change_without_the_rights_that_it_grants(server: Running) -> None:
    client = server.account("grant", "labels", [rule("clusterroles", "patch", GROUP)], everywhere=True)
    server.client().ask("POST", f"{RBAC}/clusterroles", {"metadata": {"name": "big"}, "rules": [EVERYTHING]})
    merge = "application/merge-patch+json"

    owned = {"metadata": {"finalizers": ["example.com/hold"]}}
    assert client.ask("PATCH", f"{RBAC}/clusterroles/big", owned, content_type=merge)[0] == 200
    label = {"metadata": {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}}}
    assert client.ask("PATCH", f"{RBAC}/clusterroles/big", label, content_type=merge)[0] == 403


# The roles of the cluster's own


def test_edit_and_admin_grant_what_they_select(server: Running, admin: Client) -> None:
    pod = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "c", "image": "a"}]}}
    editor, boss = server.account("roles", "editor", role="edit"), server.account("roles", "boss", role="admin")
    pods = "/api/v1/namespaces/roles/pods"

    for name in ("view", "edit", "admin"):
        assert admin.get(f"{RBAC}/clusterroles/{name}")[1]["rules"]
    assert editor.ask("POST", pods, pod)[0] == 201
    assert editor.get("/api/v1/namespaces/roles/secrets")[0] == 200
    assert boss.get("/api/v1/namespaces/roles/pods")[0] == 200
    assert boss.get(f"{RBAC}/namespaces/roles/rolebindings")[0] == 200
    merge = "application/merge-patch+json"
    done = {"status": {"phase": "Succeeded"}}
    for client in (editor, boss):
        assert client.ask("PATCH", f"{pods}/p/status", done, content_type=merge)[0] == 403
        assert client.ask("POST", f"{pods}/p/binding", {"target": {"name": "n"}})[0] == 403
        assert client.get("/api/v1/namespaces/default/pods")[0] == 403
    assert (
        boss.ask("POST", f"{RBAC}/namespaces/roles/roles", {"metadata": {"name": "x"}, "rules": [EVERYTHING]})[0] == 403
    )
    assert (
        boss.ask("POST", f"{RBAC}/namespaces/roles/roles", {"metadata": {"name": "x"}, "rules": [rule("pods", "get")]})[
            0
        ]
        == 201
    )


def test_roles_aggregate_as_deep_as_they_select(server: Running, admin: Client) -> None:
    for name, rules in (("deep", [rule("nodes", "get")]), ("middle", []), ("top", [])):
        selected = {"deep": {"is": "deep"}, "middle": {"is": "middle"}, "top": {}}[name]
        role: dict[str, Any] = {"metadata": {"name": f"agg-{name}", "labels": selected}, "rules": rules}
        if name != "deep":
            below = {"middle": "deep", "top": "middle"}[name]
            role["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": {"is": below}}]}
        assert admin.ask("POST", f"{RBAC}/clusterroles", role)[0] == 201

    wanted = [rule("nodes", "get")]
    for _ in range(100):
        found = [admin.get(f"{RBAC}/clusterroles/agg-{name}")[1].get("rules") for name in ("middle", "top")]
        if found == [wanted, wanted]:
            break
    assert found == [wanted, wanted]


# Creation by other verbs


def test_patch_and_update_alone_create_nothing(server: Running, admin: Client) -> None:
    client = server.account(
        "create", "patcher", [rule("configmaps", "patch"), rule("leases", "update", "coordination.k8s.io")]
    )
    full = server.account("create", "full", [rule("configmaps", "patch create")])
    config_map = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    path = "/api/v1/namespaces/create/configmaps/a?fieldManager=x"
    lease = {"metadata": {"name": "b"}, "spec": {}}

    assert client.ask("PATCH", path, config_map, content_type="application/apply-patch+yaml")[0] == 403
    assert client.ask("PUT", "/apis/coordination.k8s.io/v1/namespaces/create/leases/b", lease)[0] == 403
    assert full.ask("PATCH", path, config_map, content_type="application/apply-patch+yaml")[0] == 201
    assert client.ask("PATCH", path, config_map, content_type="application/apply-patch+yaml")[0] == 200


# Impersonation


def test_impersonation_is_checked_in_all_its_parts(server: Running) -> None:
    rules = [rule("users", "impersonate", resourceNames=["jane"])]
    client = server.account("act", "actor", rules, everywhere=True)
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"
    jane = {"Impersonate-User": "jane"}

    assert client.ask("POST", review, {}, **jane)[1]["status"]["userInfo"]["username"] == "jane"
    assert client.ask("POST", review, {}, **jane, **{"Impersonate-Uid": "1"})[0] == 403
    assert client.ask("POST", review, {}, **jane, **{"Impersonate-Extra-Scope": "all"})[0] == 403
    assert client.ask("POST", review, {}, **jane, **{"Impersonate-Group": "system:masters"})[0] == 403
    assert client.ask("POST", review, {}, **{"Impersonate-User": "system:admin"})[0] == 403
    assert client.ask("POST", review, {}, **{"Impersonate-Extra-Scope": "all"})[0] == 400

    more = [*rules, rule("uids", "impersonate", "authentication.k8s.io", resourceNames=["1"])]
    more.append(rule("userextras/scope", "impersonate", "authentication.k8s.io", resourceNames=["all"]))
    client = server.account("act", "more", more, everywhere=True)
    code, done = client.ask("POST", review, {}, **jane, **{"Impersonate-Uid": "1", "Impersonate-Extra-Scope": "all"})
    assert (code, done["status"]["userInfo"]["uid"]) == (201, "1")
    assert client.ask("POST", review, {}, **jane, **{"Impersonate-Extra-Scope": "view"})[0] == 403


def test_edit_of_a_namespace_impersonates_its_service_accounts(server: Running) -> None:
    editor = server.account("act", "editor", role="edit")
    review = "/apis/authentication.k8s.io/v1/selfsubjectreviews"

    code, done = editor.ask("POST", review, {}, **{"Impersonate-User": "system:serviceaccount:act:default"})
    assert (code, done["status"]["userInfo"]["groups"]) == (
        201,
        ["system:serviceaccounts", "system:serviceaccounts:act", "system:authenticated"],
    )
    assert editor.ask("POST", review, {}, **{"Impersonate-User": "system:serviceaccount:default:default"})[0] == 403


def test_an_applied_template_writes_only_what_the_user_may_patch(server: Running) -> None:
    rules = [rule("pods", "create get"), rule("pods", "patch", resourceNames=["mine", "mine-0"])]
    client, admin = server.account("stencil", "dev", rules), server.client()
    pods, spec = "/api/v1/namespaces/stencil/pods", {"containers": [{"name": "c", "image": "x"}]}
    for name in ("mine", "mine-1", "theirs-0"):
        by_admin = {"metadata": {"name": name, "labels": {"by": "admin"}}, "spec": spec}
        assert admin.ask("POST", pods, by_admin)[0] == 201

    def apply(copies: int, **about: Any) -> int:
        about |= {"labels": {"by": "dev"}, "annotations": {"mooring.dev/replicas": str(copies)}}
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec}
        path = f"{pods}/mine?fieldManager=me&force=true"
        return client.ask("PATCH", path, body, content_type="application/apply-patch+yaml")[0]

    assert apply(1, name="mine") == 201
    assert apply(2, name="mine") == 403
    assert apply(1, generateName="theirs") == 403
    for name, author in (("mine-0", "dev"), ("mine-1", "admin"), ("theirs-0", "admin")):
        assert admin.get(f"{pods}/{name}")[1]["metadata"]["labels"] == {"by": author}
