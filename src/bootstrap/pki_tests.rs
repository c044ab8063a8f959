//! Tests of the certificates below `pki/`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use super::*;

fn leaf() -> Leaf {
    let hosts = vec!["kubernetes.default".into(), "10.96.0.1".into()];
    Leaf::server("apiserver", Authority::Cluster, "kube-apiserver", hosts)
}

#[test]
fn a_second_run_keeps_everything() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let pki = Pki::new(&store);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    let authority = pki.text("ca", "crt").unwrap();
    assert!(pki.ensure_leaf(&leaf()).unwrap());
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    assert_eq!(pki.text("ca", "crt").unwrap(), authority);
    assert!(!pki.ensure_leaf(&leaf()).unwrap());
}

#[test]
fn a_certificate_that_no_longer_fits_is_renewed() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let pki = Pki::new(&store);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    pki.ensure_leaf(&leaf()).unwrap();
    let key = pki.text("apiserver", "key").unwrap();
    let mut moved = leaf();
    moved.hosts.push("10.0.0.7".into());
    assert!(pki.ensure_leaf(&moved).unwrap());
    assert_eq!(pki.text("apiserver", "key").unwrap(), key, "the key stays");
    let short = Leaf { life: LEAF_LIFE / 10, ..moved.clone() };
    assert!(!pki.is_good(&short).unwrap(), "a shorter life counts at once");
    // Another authority under the same name: the old signature no longer counts.
    store.remove("pki/ca.key").unwrap();
    store.remove("pki/ca.crt").unwrap();
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    assert!(!pki.is_good(&moved).unwrap());
}

#[test]
fn renewals_are_spread_over_a_tenth_of_the_life_and_stay_where_they_are() {
    let rest = |file: &str| rest_at_renewal(file, LEAF_LIFE).as_secs() / 86_400;
    let hosts: Vec<u64> = (0..200).map(|host| rest(&format!("kubelet-worker-{host}"))).collect();
    // A third of a year is 121 days, a tenth 36.
    assert!(hosts.iter().all(|days| (85..=121).contains(days)), "{hosts:?}");
    let busiest = hosts.iter().map(|day| hosts.iter().filter(|other| *other == day).count()).max();
    assert!(busiest < Some(20), "of 200 hosts {busiest:?} are renewed on one day: {hosts:?}");
    assert_ne!(rest("etcd-peer-a"), rest("etcd-server-a"), "nor are all of one host");
    assert_eq!(
        [rest("kubelet-worker-0"), rest("kubelet-worker-1"), rest("admin")],
        [115, 116, 101],
        "the same for ever"
    );
}

#[test]
fn a_certificate_is_renewed_on_its_day() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let pki = Pki::new(&store);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    let rest = rest_at_renewal(&leaf().file, LEAF_LIFE);
    // Made long ago: with as much left as says.
    let is_good_with = |left: Duration| {
        store.remove("pki/apiserver.crt").unwrap();
        pki.ensure_leaf(&Leaf { life: left, ..leaf() }).unwrap();
        pki.is_good(&leaf()).unwrap()
    };
    assert!(!is_good_with(rest.saturating_sub(Duration::from_hours(1))));
    assert!(is_good_with(rest + Duration::from_hours(1)));
}

#[test]
fn an_authority_whose_key_is_kept_elsewhere_is_not_made_again() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let pki = Pki::new(&store);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    let key = pki.text("ca", "key").unwrap();
    store.remove("pki/ca.key").unwrap();
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    assert!(store.read("pki/ca.key").unwrap().is_none());
    let error = pki.ensure_leaf(&leaf()).unwrap_err();
    assert_eq!(error.class(), crate::Class::Precondition);
    assert!(error.message().ends_with("pki/ca.key is not here, and without it turnup cannot sign certificates"));
    assert!(pki.issue("anne", &[], LEAF_LIFE).is_err());
    store.write_file("pki/ca.key", key.as_bytes(), 0o600).unwrap();
    assert!(pki.ensure_leaf(&leaf()).unwrap());
}

#[test]
fn an_authority_of_ones_own_signs_what_openssl_verifies() {
    let dir = tempfile::tempdir().unwrap();
    let openssl = |words: &str| {
        let run = crate::exec::Run::new("openssl").args(words.split(' ')).dir(dir.path());
        run.succeed().map(|output| output.stdout)
    };
    // Where this machine has one.
    let new = "req -x509 -newkey rsa:2048 -nodes -days 3650 -keyout root.key -out root.crt -subj /O=Example/CN=root";
    if openssl(new).is_err() {
        return;
    }
    openssl("req -newkey rsa:2048 -nodes -keyout ca.key -out ca.csr -subj /C=DE/O=Example/CN=cluster").unwrap();
    fs_err::write(dir.path().join("ext"), "basicConstraints=critical,CA:TRUE,pathlen:0\nkeyUsage=keyCertSign\n")
        .unwrap();
    openssl("x509 -req -in ca.csr -CA root.crt -CAkey root.key -CAcreateserial -days 400 -extfile ext -out own.crt")
        .unwrap();
    let read = |name: &str| fs_err::read_to_string(dir.path().join(name)).unwrap();
    fs_err::write(dir.path().join("bundle.crt"), read("own.crt") + &read("root.crt")).unwrap();
    let store = Store::open(dir.path().join("state")).unwrap();
    let settings =
        PkiSettings { ca_cert_file: "bundle.crt".into(), ca_key_file: "ca.key".into(), ..PkiSettings::default() };
    let pki = Pki { settings, work_dir: dir.path(), ..Pki::new(&store) };
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    assert!(pki.ensure_leaf(&leaf()).unwrap());
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    assert!(!pki.ensure_leaf(&leaf()).unwrap());
    fs_err::write(dir.path().join("all.crt"), pki.root_bundle().unwrap().unwrap()).unwrap();
    openssl("verify -purpose sslserver -verify_hostname kubernetes.default -CAfile all.crt state/pki/apiserver.crt")
        .unwrap();
    openssl("verify -partial_chain -trusted state/pki/ca.crt state/pki/apiserver.crt").unwrap();
    // Not the company's root: what else it signs does not log in here.
    assert_eq!(pki.text("ca", "crt").unwrap().matches("BEGIN CERTIFICATE").count(), 1);
    // Another authority is another item.
    let other =
        PkiSettings { ca_cert_file: "root.crt".into(), ca_key_file: "root.key".into(), ..PkiSettings::default() };
    let other = Pki { settings: other, work_dir: dir.path(), ..Pki::new(&store) };
    let error = other.ensure_authority(Authority::Cluster, "c").unwrap_err();
    assert!(error.message().contains("the cluster has another authority"), "{}", error.message());
    let name = KeysetName::KubernetesCa;
    other.make_item(name, 2, "c").unwrap();
    other.write_keyset(name, other.keyset(name).unwrap().create(name, Timestamp::now()).unwrap()).unwrap();
    other.ensure_authority(Authority::Cluster, "c").unwrap();
    assert_eq!(other.text("ca-2", "crt").unwrap().replace('\r', ""), read("root.crt"));
    assert!(!other.ensure_leaf(&leaf()).unwrap(), "the one before signs until the other is promoted");
    let error = other.make_item(name, 3, "c").unwrap_err();
    assert!(error.message().contains("names the authority that is item 2 already"), "{}", error.message());
}

#[test]
fn keys_and_lives_are_those_of_the_settings() {
    use crate::cluster::KeyAlgorithm;
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let with = |key_algorithm, ca_lifetime| {
        let settings = PkiSettings { ca_lifetime, key_algorithm, ..PkiSettings::default() };
        Pki { settings, ..Pki::new(&store) }
    };
    let pki = with(KeyAlgorithm::EcdsaP384, LEAF_LIFE / 2);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    pki.ensure_service_account_key().unwrap();
    assert!(pki.ensure_leaf(&leaf()).unwrap());
    for file in ["ca", "sa", "apiserver"] {
        assert!(private_key::is_of(&pki.read_key(file).unwrap(), KeyAlgorithm::EcdsaP384), "{file}");
    }
    let end = |file: &str| end_of(&pki.text(file, "crt").unwrap()).unwrap().timestamp();
    assert_eq!(end("apiserver"), end("ca"), "it does not outlive its authority");
    assert!(!pki.ensure_leaf(&leaf()).unwrap(), "and is not made again for that");
    let before = [pki.text("ca", "key").unwrap(), pki.text("sa", "key").unwrap()];
    let pki = with(KeyAlgorithm::EcdsaP256, LEAF_LIFE / 2);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    pki.ensure_service_account_key().unwrap();
    assert!(pki.ensure_leaf(&leaf()).unwrap());
    assert!(private_key::is_of(&pki.read_key("apiserver").unwrap(), KeyAlgorithm::EcdsaP256));
    assert_eq!([pki.text("ca", "key").unwrap(), pki.text("sa", "key").unwrap()], before, "these stay");
}

#[test]
fn a_user_has_every_group_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let store = Store::open(dir.path()).unwrap();
    let pki = Pki::new(&store);
    pki.ensure_authority(Authority::Cluster, "c").unwrap();
    let files = || fs_err::read_dir(dir.path().join("pki")).unwrap().count();
    let before = files();
    let long: Vec<String> = (0..40).map(|number| format!("team-{number:050}")).collect();
    for groups in [vec![], vec!["viewers".to_owned()], vec!["viewers".into(), "audit".into()], long] {
        let issued = pki.issue("anne@laptop", &groups, Duration::from_hours(2)).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(issued.certificate.as_bytes()).unwrap();
        let (rest, found) = X509Certificate::from_der(&pem.contents).unwrap();
        assert!(rest.is_empty());
        let (_, authority) = x509_parser::pem::parse_x509_pem(pki.text("ca", "crt").unwrap().as_bytes()).unwrap();
        let (_, authority) = X509Certificate::from_der(&authority.contents).unwrap();
        found.verify_signature(Some(authority.public_key())).unwrap();
        let names = |name: &x509_parser::x509::AttributeTypeAndValue<'_>| name.as_str().unwrap().to_owned();
        assert_eq!(found.subject().iter_organization().map(names).collect::<Vec<_>>(), groups);
        assert_eq!(found.subject().iter_common_name().map(names).collect::<Vec<_>>(), ["anne@laptop"]);
        assert_eq!(found.raw_serial_as_string().replace(':', ""), issued.serial);
        assert_eq!(found.validity().not_after.timestamp(), issued.expires.as_second());
        assert_eq!(hex::encode(Sha256::digest(&pem.contents)), issued.sha256);
        let usage = found.extended_key_usage().unwrap().unwrap().value;
        assert!(usage.client_auth && !usage.server_auth && !found.is_ca());
        let key = KeyPair::from_pem(&issued.key).unwrap();
        assert_eq!(key.subject_public_key_info(), found.public_key().raw);
    }
    assert_eq!(files(), before);
}

#[test]
fn a_serial_is_positive_and_has_all_of_its_bytes() {
    for _ in 0..1000 {
        assert!((0x40..0x80).contains(&random_serial().unwrap()[0]));
    }
}
