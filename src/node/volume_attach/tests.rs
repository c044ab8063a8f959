//! The attaching of volumes against servers that answer as the clouds' documentation says they do.
#![expect(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::*;
use crate::http_server;

/// A request as the server saw it.
#[derive(Clone, Debug)]
struct Request {
    /// Method and path, as `GET /x?y=z`.
    line: String,
    headers: String,
    body: String,
}

/// What a cloud remembers, and what it was asked.
#[derive(Default)]
struct World {
    /// The machine that has the volume now; empty for none.
    holder: String,
    /// How often it is looked at before that holder lets go.
    lets_go_after: Option<usize>,
    /// What an attachment is answered with in place of being made: status and text.
    refuses: Option<(u16, String)>,
    /// How often it is, where it is not for ever.
    relents_after: Option<usize>,
    /// Another machine that is faster once.
    faster: Option<String>,
    requests: Vec<Request>,
}

impl World {
    /// One look at the volume: who has it.
    fn look(&mut self) -> String {
        match &mut self.lets_go_after {
            Some(0) => {
                self.lets_go_after = None;
                self.holder.clear();
            }
            Some(count) => *count -= 1,
            None => {}
        }
        self.holder.clone()
    }

    /// Asks for the volume: whether it comes to `machine`.
    fn give(&mut self, machine: &str) -> bool {
        self.holder = self.faster.take().unwrap_or_else(|| machine.to_owned());
        self.holder == machine
    }

    /// What an attachment is answered with now, when it is refused.
    fn refuse(&mut self) -> Option<(u16, String)> {
        match &mut self.relents_after {
            Some(0) => self.refuses = None,
            Some(count) => *count -= 1,
            None => {}
        }
        self.refuses.clone()
    }

    fn asked(&self, what: &str) -> usize {
        self.requests.iter().filter(|request| request.line.contains(what) || request.body.contains(what)).count()
    }
}

type Handler = fn(&mut World, &Request) -> (u16, String);

fn ok(value: &Value) -> (u16, String) {
    (200, value.to_string())
}

/// A server for as long as the test goes on; its address.
fn serve(world: &Arc<Mutex<World>>, handler: Handler) -> String {
    let world = Arc::clone(world);
    http_server::serve(http_server::LOOPBACK, move |request, stream| {
        let header = |(name, value): (&String, &String)| format!("{name}: {value}").to_lowercase();
        let headers = request.headers.iter().map(header).collect::<Vec<_>>().join("\n");
        assert!(!headers.contains("transfer-encoding"), "no metadata service has to read chunks: {headers}");
        let line = format!("{} {}", request.method, request.path);
        let request = Request { line, headers, body: String::from_utf8(request.body).unwrap() };
        let mut world = world.lock().unwrap();
        let (status, text) = handler(&mut world, &request);
        world.requests.push(request);
        http_server::send(stream, &format!("{status} x"), text.as_bytes())
    })
}

/// Short only where the holder never lets go: everything else ends with an answer, however slow the
/// machine is just now.
fn timeouts(world: &World) -> Timeouts {
    let for_ever = !world.holder.is_empty() && world.lets_go_after.is_none();
    let elsewhere = Duration::from_millis(if for_ever { 150 } else { 60_000 });
    let rights = Duration::from_mins(u64::from(world.relents_after.is_some()));
    Timeouts { poll: Duration::from_millis(5), attach: Duration::from_mins(1), elsewhere, rights }
}

/// The devices or the error, and what was told meanwhile.
fn run(cloud: &str, world: World) -> (Result<Vec<PathBuf>>, Vec<String>, Arc<Mutex<World>>) {
    let timeouts = timeouts(&world);
    let world = Arc::new(Mutex::new(world));
    let volume = volume(cloud);
    let mut told = Vec::new();
    let mut tell = |report: NodeEvent| {
        told.push(serde_json::to_string(&report).unwrap());
        Ok(())
    };
    let handler: Handler = match cloud {
        GCE => compute,
        AWS => ec2,
        _ => manager,
    };
    let url = serve(&world, handler);
    let endpoints = Endpoints { metadata: url.clone(), api: Some(url) };
    let api = cloud::require_volume(&volume).unwrap().volume_api(&volume, &endpoints);
    let result = api.and_then(|mut api| settle(api.as_mut(), &volume, timeouts, &mut tell));
    (result, told, world)
}

fn volume(cloud: &str) -> Volume {
    let id = match cloud {
        GCE => "projects/p/zones/z-b/disks/shelf-etcd-main-a",
        AWS => "vol-0abc",
        _ => "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/disks/shelf-etcd-main-a",
    };
    Volume { cloud: cloud.into(), id: id.into(), name: "shelf-etcd-main-a".into() }
}

/// This host, as each cloud calls it.
fn own_name(cloud: &str) -> &'static str {
    match cloud {
        GCE => "shelf-control-plane-0-x1y2",
        AWS => "i-0own",
        _ => "/subscriptions/s/resourceGroups/g/providers/Microsoft.Compute/virtualMachines/shelf-control-plane-0",
    }
}

const GCE: &str = "gce";
const AWS: &str = "aws";
const AZURE: &str = "azure";
const CLOUDS: [&str; 3] = [GCE, AWS, AZURE];

fn compute(world: &mut World, request: &Request) -> (u16, String) {
    let own = own_name(GCE);
    let path = request.line.as_str();
    if path.contains("computeMetadata") {
        assert!(request.headers.contains("metadata-flavor: google"), "{request:?}");
        return match path {
            "GET /computeMetadata/v1/instance/name" => (200, own.to_owned()),
            "GET /computeMetadata/v1/instance/service-accounts/default/token" => {
                ok(&json!({"access_token": "t0ken", "expires_in": 3000, "token_type": "Bearer"}))
            }
            other => panic!("{other}"),
        };
    }
    assert!(request.headers.contains("authorization: bearer t0ken"), "{request:?}");
    let zone = "/compute/v1/projects/p/zones/z-b";
    if path == format!("GET {zone}/disks/shelf-etcd-main-a") {
        let holder = world.look();
        let user = format!("https://www.googleapis.com/compute/v1/projects/p/zones/z-b/instances/{holder}");
        let users = if holder.is_empty() { json!(null) } else { json!([user]) };
        return ok(&json!({"name": "shelf-etcd-main-a", "status": "READY", "users": users}));
    }
    if path == format!("GET {zone}/operations/op-1") {
        let in_use = json!({"errors": [{"code": "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "message": "The disk resource is already being used"}]});
        let won = world.holder == own;
        return ok(&json!({"name": "op-1", "status": "DONE", "error": if won { json!(null) } else { in_use }}));
    }
    assert_eq!(path, format!("POST {zone}/instances/{own}/attachDisk"));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!((&body["deviceName"], &body["autoDelete"]), (&json!("shelf-etcd-main-a"), &json!(false)));
    if let Some(refusal) = world.refuse() {
        return refusal;
    }
    world.give(own);
    ok(&json!({"name": "op-1", "status": "RUNNING"}))
}

fn ec2(world: &mut World, request: &Request) -> (u16, String) {
    let own = own_name(AWS);
    if !request.line.starts_with("POST ") {
        let session = request.headers.contains("x-aws-ec2-metadata-token: s3ssion");
        let text = match request.line.as_str() {
            "PUT /latest/api/token" => {
                assert!(request.headers.contains("x-aws-ec2-metadata-token-ttl-seconds: "), "{request:?}");
                return (200, "s3ssion".into());
            }
            "GET /latest/dynamic/instance-identity/document" => {
                json!({"instanceId": own, "region": "eu-central-1"}).to_string()
            }
            "GET /latest/meta-data/iam/security-credentials/" => "a-role".into(),
            "GET /latest/meta-data/iam/security-credentials/a-role" => {
                json!({"Code": "Success", "AccessKeyId": "AKIA", "SecretAccessKey": "s3cret", "Token": "l3nt"})
                    .to_string()
            }
            other => panic!("{other}"),
        };
        return if session { (200, text) } else { (401, "Unauthorized".into()) };
    }
    assert!(request.headers.contains("x-amz-security-token: l3nt"), "{request:?}");
    assert!(
        request.headers.contains(
            "/eu-central-1/ec2/aws4_request, signedheaders=content-type;host;x-amz-date;x-amz-security-token"
        )
    );
    assert!(!request.body.contains("s3cret") && !request.headers.contains("s3cret"));
    let parameter = |name: &str| request.body.split('&').find_map(|pair| pair.strip_prefix(&format!("{name}=")));
    match parameter("Action").unwrap() {
        "DescribeVolumes" => {
            let holder = world.look();
            let attachment = if holder.is_empty() {
                "<status>available</status><attachmentSet/>".to_owned()
            } else {
                format!(
                    "<status>in-use</status><attachmentSet><item><volumeId>vol-0abc</volumeId><instanceId>{holder}</instanceId>\
                     <device>/dev/sdg</device><status>attached</status></item></attachmentSet>"
                )
            };
            (200, format!("<DescribeVolumesResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><volumeSet><item>\
                <volumeId>vol-0abc</volumeId>{attachment}<tagSet><item><key>status</key></item></tagSet></item></volumeSet></DescribeVolumesResponse>"))
        }
        "DescribeInstances" => (200, "<DescribeInstancesResponse><reservationSet><item><instancesSet><item><blockDeviceMapping><item>\
            <deviceName>/dev/xvda</deviceName></item><item><deviceName>/dev/sdf</deviceName></item></blockDeviceMapping></item>\
            </instancesSet></item></reservationSet></DescribeInstancesResponse>".into()),
        "AttachVolume" => {
            assert_eq!(parameter("Device"), Some("%2Fdev%2Fsdg"), "the first name that is free");
            assert_eq!((parameter("InstanceId"), parameter("VolumeId")), (Some(own), Some("vol-0abc")));
            if let Some(refusal) = world.refuse() {
                return refusal;
            }
            if world.give(own) {
                (200, "<AttachVolumeResponse><status>attaching</status></AttachVolumeResponse>".into())
            } else {
                (400, "<Response><Errors><Error><Code>VolumeInUse</Code><Message>vol-0abc is already attached</Message></Error></Errors></Response>".into())
            }
        }
        other => panic!("{other}"),
    }
}

fn manager(world: &mut World, request: &Request) -> (u16, String) {
    let own = own_name(AZURE);
    let path = request.line.as_str();
    if path.contains("/metadata/") {
        assert!(request.headers.contains("metadata: true"), "{request:?}");
        return if path.contains("/metadata/instance/compute?") {
            ok(&json!({"resourceId": own, "azEnvironment": "AzurePublicCloud"}))
        } else {
            assert!(path.ends_with("&resource=https%3A%2F%2Fmanagement.azure.com%2F"), "{path}");
            ok(&json!({"access_token": "t0ken"}))
        };
    }
    assert!(request.headers.contains("authorization: bearer t0ken"), "{request:?}");
    let volume = volume(AZURE);
    if path.starts_with(&format!("GET {own}?api-version=")) {
        let mut disks = vec![json!({"lun": 0, "managedDisk": {"id": "/subscriptions/s/other"}})];
        if world.holder == own {
            // Azure writes ids in whatever case it likes.
            disks.push(json!({"lun": 1, "managedDisk": {"id": volume.id.to_uppercase()}}));
        }
        return ok(&json!({"properties": {"storageProfile": {"dataDisks": disks}}}));
    }
    if path.starts_with(&format!("GET {}?api-version=", volume.id)) {
        let holder = world.look();
        return ok(&if holder.is_empty() {
            json!({"properties": {"diskState": "Unattached"}})
        } else {
            json!({"managedBy": holder, "properties": {"diskState": "Attached"}})
        });
    }
    assert!(path.starts_with(&format!("POST {own}/attachDetachDataDisks?api-version=")), "{path}");
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, json!({"dataDisksToAttach": [{"diskId": volume.id, "lun": 1}]}));
    if let Some(refusal) = world.refuse() {
        return refusal;
    }
    if world.give(own) { (202, String::new()) } else { (409, json!({"error": {"code": "Conflict"}}).to_string()) }
}

/// What asks for the attachment.
fn question(cloud: &str) -> &'static str {
    match cloud {
        GCE => "/attachDisk",
        AWS => "Action=AttachVolume",
        _ => "/attachDetachDataDisks",
    }
}

#[test]
fn a_free_volume_is_attached_and_one_that_is_here_left_alone() {
    for cloud in CLOUDS {
        let (devices, told, world) = run(cloud, World::default());
        let devices = devices.unwrap();
        let expected = match cloud {
            GCE => "/dev/disk/by-id/google-shelf-etcd-main-a",
            AWS => "/dev/disk/by-id/nvme-Amazon_Elastic_Block_Store_vol0abc",
            _ => "/dev/disk/azure/data/by-lun/1",
        };
        assert_eq!(devices[0], PathBuf::from(expected));
        assert_eq!(devices.contains(&PathBuf::from("/dev/xvdg")), cloud == AWS, "{devices:?}");
        assert_eq!(world.lock().unwrap().asked(question(cloud)), 1, "asked once");
        assert!(told[0].contains("the volume shelf-etcd-main-a is being attached"), "{told:?}");
        let (devices, told, world) = run(cloud, World { holder: own_name(cloud).into(), ..World::default() });
        devices.unwrap();
        assert_eq!((world.lock().unwrap().asked(question(cloud)), told.len()), (0, 0));
    }
}

#[test]
fn another_machine_is_waited_for_and_never_robbed() {
    for cloud in CLOUDS {
        let other = if cloud == AZURE { "/subscriptions/s/dead" } else { "dead-machine" };
        let held = || World { holder: other.into(), ..World::default() };
        let (devices, told, world) = run(cloud, World { lets_go_after: Some(4), ..held() });
        devices.unwrap();
        assert!(told[0].contains(&format!("is still attached to {other}: waiting up to")), "{told:?}");
        assert_eq!(world.lock().unwrap().asked(question(cloud)), 1);
        let (devices, _, world) = run(cloud, held());
        let error = devices.unwrap_err();
        assert_eq!(error.class(), Class::Precondition);
        assert!(error.message().ends_with(&format!("which does not let go: {other}")), "{}", error.message());
        assert!(error.next().is_some_and(|next| next.contains("detach")), "{:?}", error.next());
        assert_eq!(world.lock().unwrap().asked(question(cloud)), 0);
        // Another machine is faster, and detaches it.
        let faster = World { faster: Some(other.into()), lets_go_after: Some(6), ..World::default() };
        let (devices, told, _) = run(cloud, faster);
        devices.unwrap();
        assert!(told.iter().any(|line| line.contains(other)), "{told:?}");
    }
}

#[test]
fn a_refusal_says_what_the_cloud_said_and_which_right_is_missing() {
    let denied = |cloud| match cloud {
        GCE => json!({"error": {"code": 403, "message": "Required 'compute.disks.use' permission"}}).to_string(),
        AWS => "<Response><Errors><Error><Code>UnauthorizedOperation</Code><Message>You are not authorized</Message>\
            </Error></Errors><RequestID>r</RequestID></Response>"
            .to_owned(),
        _ => json!({"error": {"code": "AuthorizationFailed", "message": "does not have authorization"}}).to_string(),
    };
    let mut text = String::new();
    for cloud in CLOUDS {
        // What is new counts after some minutes.
        let (devices, told, world) =
            run(cloud, World { refuses: Some((403, denied(cloud))), relents_after: Some(2), ..World::default() });
        devices.unwrap();
        assert!(told[0].contains("is not this host's to attach yet"), "{told:?}");
        assert_eq!(world.lock().unwrap().asked(question(cloud)), 3);
        let (devices, _, _) = run(cloud, World { refuses: Some((403, denied(cloud))), ..World::default() });
        let error = devices.unwrap_err();
        assert_eq!(error.class(), Class::Precondition, "{error:?}");
        text += &(error.render() + "\n");
        let (devices, _, _) = run(cloud, World { refuses: Some((404, "{}".into())), ..World::default() });
        assert!(devices.unwrap_err().next().is_some_and(|next| next.starts_with("is the volume there")));
        // A server that is busy is asked again, and said to be busy when it stays so.
        let (devices, _, world) = run(cloud, World { refuses: Some((503, "busy".into())), ..World::default() });
        assert_eq!(devices.unwrap_err().class(), Class::Transient);
        assert_eq!(world.lock().unwrap().asked(question(cloud)), 1, "the step tries again, not we");
    }
    insta::assert_snapshot!(text);
}

/// Google asks it when the attachment is under way, and then the operation fails, not the request.
#[test]
fn an_account_that_may_not_be_itself_is_told_so() {
    let denied =
        json!({"code": "SERVICE_ACCOUNT_ACCESS_DENIED", "message": "The user does not have access to service account"});
    let operation = json!({"name": "op-1", "status": "DONE", "error": {"errors": [denied]}}).to_string();
    let (devices, _, _) = run(GCE, World { refuses: Some((200, operation)), ..World::default() });
    let error = devices.unwrap_err();
    assert_eq!(error.class(), Class::Precondition);
    assert!(error.next().is_some_and(|next| next.contains("roles/iam.serviceAccountUser on itself")), "{error:?}");
}
