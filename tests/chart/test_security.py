"""Restricted pod security, and no right that could reach a Secret or another tenant."""

from __future__ import annotations

import pytest

OWN = {"jobs", "deployments", "services", "controllerrevisions"}
READ_ONLY = {"pods", "endpointslices"}


def roles(rendered):
    """The rules of each role that is bound to the operator, by name and namespace."""
    bound = {
        (binding["roleRef"]["kind"], binding["roleRef"]["name"], binding["metadata"].get("namespace"))
        for kind in ("RoleBinding", "ClusterRoleBinding")
        for binding in rendered.of_kind(kind)
    }
    found = {
        (role["kind"], role["metadata"]["name"], role["metadata"].get("namespace")): role["rules"]
        for kind in ("Role", "ClusterRole")
        for role in rendered.of_kind(kind)
    }
    assert bound <= found.keys(), "a binding names a role that the chart does not make"
    return {key: found[key] for key in bound}


def verbs(rules, resource):
    return {verb for rule in rules for verb in rule["verbs"] if resource in rule["resources"]}


def all_rules(rendered):
    return [rule for rules in roles(rendered).values() for rule in rules]


@pytest.fixture(params=["all namespaces", "named namespaces"])
def rendered(request, render):
    return render(watchNamespaces=["team-a", "team-b"] if request.param == "named namespaces" else [])


def test_the_pod_keeps_the_restricted_pod_security_standard(default):
    """https://kubernetes.io/docs/concepts/security/pod-security-standards, level restricted, rule by rule."""
    pod = default.one("Deployment")["spec"]["template"]["spec"]
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] != 0
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert all(volume.keys() <= {"name", "emptyDir"} for volume in pod["volumes"])
    for container in pod["containers"]:
        context = container["securityContext"]
        assert context["allowPrivilegeEscalation"] is False
        assert context["capabilities"] == {"drop": ["ALL"]}
        assert not context.get("privileged")
        assert not [port for port in container["ports"] if "hostPort" in port]


def test_the_pod_cannot_write_to_its_image_and_is_bounded(default):
    (container,) = default.one("Deployment")["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert [mount["mountPath"] for mount in container["volumeMounts"]] == ["/tmp"]
    assert container["resources"]["limits"]["memory"]
    assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_no_right_reaches_a_secret(rendered):
    for rule in all_rules(rendered):
        assert not {"secrets", "*"} & {*rule["resources"], *rule["verbs"], *rule["apiGroups"]}, rule
        assert not {"bind", "escalate", "impersonate"} & set(rule["verbs"])
        assert "pods/exec" not in rule["resources"]


def test_the_rights_are_those_of_the_roads_it_walks(rendered):
    rules = all_rules(rendered)
    for resource in OWN:
        assert verbs(rules, resource) == {"get", "list", "watch", "create", "patch", "delete"}, resource
    for resource in READ_ONLY:
        assert verbs(rules, resource) == {"list", "watch"}, resource
    assert verbs(rules, "gemmaserves") == {"get", "list", "watch"}, "the spec is the user's"
    assert verbs(rules, "gemmaserves/status") == {"patch"}
    assert verbs(rules, "events") == {"create"}
    assert verbs(rules, "leases") == {"get", "create", "update"}
    granted = {resource for rule in rules for resource in rule["resources"]}
    others = {"gemmaserves", "gemmaserves/status", "gemmaserves/finalizers", "events", "leases"}
    assert granted == OWN | READ_ONLY | others


def test_named_namespaces_get_roles_of_their_own_and_no_cluster_role(render):
    rendered = render(watchNamespaces=["team-a", "team-b"])
    assert not rendered.of_kind("ClusterRoleBinding")
    namespaces = {namespace for kind, _, namespace in roles(rendered) if kind == "Role"}
    assert namespaces == {"team-a", "team-b", "gemmaserve-system"}


def test_leases_are_only_of_its_own_namespace(rendered):
    holders = [key for key, rules in roles(rendered).items() if verbs(rules, "leases")]
    assert [(kind, namespace) for kind, _, namespace in holders] == [("Role", "gemmaserve-system")]


def test_every_binding_is_to_the_operators_service_account(rendered):
    account = rendered.one("ServiceAccount")["metadata"]["name"]
    pod = rendered.one("Deployment")["spec"]["template"]["spec"]
    assert pod["serviceAccountName"] == account
    for binding in [*rendered.of_kind("RoleBinding"), *rendered.of_kind("ClusterRoleBinding")]:
        assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": "gemmaserve-system"}]


def test_users_of_the_cluster_get_gemmaserves_by_its_own_roles(default, render):
    edit = default.one("ClusterRole", "-edit")
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert edit["rules"][0]["apiGroups"] == ["gemmaserve.dev"]
    assert not [role for role in render(rbac={"aggregate": False}).of_kind("ClusterRole") if "edit" in str(role)]


def test_without_rbac_no_role_is_made(render):
    rendered = render(rbac={"create": False})
    assert not [item for item in rendered.objects if "Role" in item["kind"]]
