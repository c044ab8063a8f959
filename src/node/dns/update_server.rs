//! A DNS server that takes dynamic updates of one zone: what it has under a name, and a change of
//! that which takes effect only while it still has it (RFC 2136, section 2.4).
//!
//! Every message goes over TCP, so that none is truncated or delivered twice, and is signed with
//! TSIG (RFC 8945). Nothing here decides what a name should lead to.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use domain::base::iana::{Class as DnsClass, Opcode, Rcode};
use domain::base::message_builder::{AdditionalBuilder, MessageBuilder, StreamTarget};
use domain::base::name::FlattenInto as _;
use domain::base::{Message, Name, Rtype, Ttl, UnknownRecordData};
use domain::rdata::tsig::Time48;
use domain::tsig::{ClientTransaction, Key, ValidationError};

use crate::error::{Context as _, Error, Result};

use super::config::{DnsConfig, UpdateServer};
use super::record::{Changed, FoundName, NewName, RecordSet, split, text_data};

/// For each of connecting, sending and the answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// What may stand at a name of ours, in the order of [`FoundName::sets`].
const TYPES: [Rtype; 3] = [Rtype::A, Rtype::AAAA, Rtype::TXT];

type DnsName = Name<Vec<u8>>;
type Request = AdditionalBuilder<StreamTarget<Vec<u8>>>;

/// A record of a change without its name, which is that of all.
type Entry = (DnsClass, Ttl, UnknownRecordData<Vec<u8>>);

/// Whether an answer has to be signed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Signed {
    Always,
    IfItIs,
}

/// The server and zone of a configuration.
pub(super) struct DynamicServer<'c> {
    config: &'c DnsConfig,
    access: &'c UpdateServer,
    zone: DnsName,
    key: Arc<Key>,
}

impl<'c> DynamicServer<'c> {
    /// Connects to nothing yet.
    pub(super) fn new(config: &'c DnsConfig, access: &'c UpdateServer) -> Result<Self> {
        let key = &access.key;
        let algorithm = key.algorithm.parse().map_err(|_| config.wrong("key.algorithm"))?;
        let secret = STANDARD.decode(key.secret.as_bytes()).map_err(|_| config.wrong("key.secret"))?;
        let name: DnsName = key.name.parse().map_err(|_| config.wrong("key.name"))?;
        let name = name.try_flatten_into().map_err(|_| config.wrong("key.name"))?;
        let key = Key::new(algorithm, &secret, name, None, None).map_err(|_| config.wrong("key.secret"))?;
        Ok(Self { config, access, zone: config.zone.parse().map_err(|_| config.wrong("zone"))?, key: Arc::new(key) })
    }

    /// What the server has at this name now.
    pub(super) fn look(&self, name: &str) -> Result<FoundName> {
        let (parsed, mut stream) = (self.parse(name)?, self.connect()?);
        let mut found = FoundName::default();
        for (set, rtype) in found.sets.iter_mut().zip(TYPES) {
            let mut question = MessageBuilder::new_stream_vec().question();
            question.push((&parsed, rtype)).map_err(too_long)?;
            // Some servers sign no answer to a question. A change rests on what the server compares
            // itself, not on what is believed here.
            let answer = self.exchange(&mut stream, question.additional(), Signed::IfItIs)?;
            match answer.header().rcode() {
                Rcode::NOERROR | Rcode::NXDOMAIN => {}
                rcode => return Err(self.refusal(rcode, &format!("to say what {name} is"))),
            }
            let records = answer.answer().map_err(|_| self.garbled())?;
            for record in records.limit_to_in::<UnknownRecordData<_>>().flatten() {
                if record.owner() == &parsed && record.rtype() == rtype {
                    set.insert(record.data().data().to_vec());
                    found.ttl = if rtype == Rtype::TXT { found.ttl } else { Some(record.ttl().as_secs()) };
                }
            }
        }
        Ok(found)
    }

    /// Puts this at the name, or nothing, while the server still has there what was found. Where
    /// nothing of the owner was found, only while nothing at all is there.
    pub(super) fn change(&self, name: &str, found: &FoundName, new: Option<&NewName>) -> Result<Changed> {
        let parsed = self.parse(name)?;
        let is_ours = found.belongs_to(&self.config.owner);
        let mut message = MessageBuilder::new_stream_vec();
        message.header_mut().set_opcode(Opcode::UPDATE);
        let mut zone = message.question();
        zone.push((&self.zone, Rtype::SOA)).map_err(too_long)?;
        let mut prerequisites = zone.answer();
        for (class, ttl, data) in prerequisites_of(found, is_ours)? {
            prerequisites.push((&parsed, class, ttl, data)).map_err(too_long)?;
        }
        let mut update = prerequisites.authority();
        for (class, ttl, data) in self.updates_of(found, is_ours, new)? {
            update.push((&parsed, class, ttl, data)).map_err(too_long)?;
        }
        let answer = self.exchange(&mut self.connect()?, update.additional(), Signed::Always)?;
        match answer.header().rcode() {
            Rcode::NOERROR => Ok(Changed::Done),
            Rcode::YXDOMAIN | Rcode::YXRRSET | Rcode::NXRRSET | Rcode::NXDOMAIN => Ok(Changed::Raced),
            rcode => Err(self.refusal(rcode, &format!("to change {name}"))),
        }
    }

    /// What is deleted and added (RFC 2136, section 2.5). The mark stays as it is until the name
    /// goes.
    fn updates_of(&self, found: &FoundName, is_ours: bool, new: Option<&NewName>) -> Result<Vec<Entry>> {
        let wanted = new.map_or_else(Default::default, |new| {
            let [v4, v6] = split(&new.addresses);
            [v4, v6, RecordSet::from([text_data(&self.config.owner)])]
        });
        let ttl = Ttl::from_secs(new.map_or(0, |new| new.ttl));
        let mut updates = Vec::new();
        for ((old, wanted), rtype) in found.sets.iter().zip(&wanted).zip(TYPES) {
            if rtype == Rtype::TXT && is_ours && new.is_some() {
                continue;
            }
            if is_ours && !old.is_empty() {
                updates.push(entry(DnsClass::ANY, Ttl::ZERO, rtype, &[])?);
            }
            for data in wanted {
                updates.push(entry(DnsClass::IN, ttl, rtype, data)?);
            }
        }
        Ok(updates)
    }

    fn parse(&self, name: &str) -> Result<DnsName> {
        name.parse().map_err(|_| self.config.wrong("names"))
    }

    fn connect(&self) -> Result<TcpStream> {
        let UpdateServer { server, port, .. } = self.access;
        let addresses: Vec<SocketAddr> = (server.as_str(), *port)
            .to_socket_addrs()
            .context(format!("the DNS server {server} has no address"))?
            .collect();
        let mut last = None;
        for address in &addresses {
            match TcpStream::connect_timeout(address, PATIENCE) {
                Ok(stream) => {
                    stream.set_read_timeout(Some(PATIENCE))?;
                    stream.set_write_timeout(Some(PATIENCE))?;
                    stream.set_nodelay(true)?;
                    return Ok(stream);
                }
                Err(error) => last = Some(error),
            }
        }
        let why = last.map_or_else(|| "it has no address".to_owned(), |error| error.to_string());
        Err(Error::transient(format!("the DNS server {server} does not take connections at port {port}: {why}")))
    }

    /// Sends the signed request and reads the answer to it, whose signature is verified.
    fn exchange(&self, stream: &mut TcpStream, mut request: Request, signed: Signed) -> Result<Message<Vec<u8>>> {
        let mut id = [0; 2];
        getrandom::fill(&mut id).map_err(|error| Error::bug(format!("no random bytes: {error}")))?;
        let id = u16::from_ne_bytes(id);
        request.header_mut().set_id(id);
        let transaction =
            ClientTransaction::request(Arc::clone(&self.key), &mut request, Time48::now()).map_err(too_long)?;
        let away = |error: std::io::Error| {
            Error::transient(format!("the DNS server {} does not answer: {error}", self.access.server))
        };
        stream.write_all(request.finish().as_stream_slice()).map_err(away)?;
        let mut length = [0; 2];
        stream.read_exact(&mut length).map_err(away)?;
        let mut bytes = vec![0; usize::from(u16::from_be_bytes(length))];
        stream.read_exact(&mut bytes).map_err(away)?;
        let mut answer = Message::from_octets(bytes).map_err(|_| self.garbled())?;
        let rcode = answer.header().rcode();
        match transaction.answer(&mut answer, Time48::now()) {
            Err(ValidationError::ServerUnsigned) if signed == Signed::IfItIs => {}
            verified => verified.map_err(|error| self.distrust(error, rcode))?,
        }
        if answer.header().id() != id || !answer.header().qr() {
            return Err(self.garbled());
        }
        Ok(answer)
    }

    fn garbled(&self) -> Error {
        Error::transient(format!("the answer of the DNS server {} makes no sense", self.access.server))
    }

    /// Why an answer is not believed.
    fn distrust(&self, error: ValidationError, rcode: Rcode) -> Error {
        let UpdateServer { server, key, .. } = self.access;
        let name = &key.name;
        match error {
            ValidationError::ServerBadTime { client, server: theirs } => {
                let apart = u64::from(client).abs_diff(u64::from(theirs));
                Error::precondition(format!("the clock of the DNS server {server} is {apart} s apart (BADTIME)"))
            }
            ValidationError::ServerBadKey => {
                Error::precondition(format!("the DNS server {server} does not know the key {name} (BADKEY)"))
            }
            ValidationError::ServerBadSig => Error::precondition(format!(
                "the DNS server {server} has another secret or algorithm for the key {name} (BADSIG)"
            )),
            ValidationError::ServerUnsigned if rcode != Rcode::NOERROR => self.refusal(rcode, "to answer"),
            error => Error::precondition(format!("the answer of the DNS server {server} is not believed: {error}")),
        }
    }

    /// What a server means by a code.
    fn refusal(&self, rcode: Rcode, what: &str) -> Error {
        let (UpdateServer { server, key, .. }, zone) = (self.access, &self.config.zone);
        let name = &key.name;
        match rcode {
            Rcode::SERVFAIL => Error::transient(format!("the DNS server {server} failed {what} (SERVFAIL)")),
            Rcode::NOTAUTH => {
                Error::precondition(format!("{server} is no primary DNS server of the zone {zone} (NOTAUTH)"))
            }
            Rcode::NOTZONE => Error::precondition(format!("a name is not in the zone {zone} (NOTZONE)")),
            rcode => Error::precondition(format!(
                "the DNS server {server} refuses {what} ({rcode}): does it allow updates of {zone} with the key {name}?"
            )),
        }
    }
}

fn entry(class: DnsClass, ttl: Ttl, rtype: Rtype, data: &[u8]) -> Result<Entry> {
    UnknownRecordData::from_octets(rtype, data.to_vec()).map(|data| (class, ttl, data)).map_err(too_long)
}

/// What must be so for a change (RFC 2136, section 2.4): all that was found, or nothing at the
/// name.
fn prerequisites_of(found: &FoundName, is_ours: bool) -> Result<Vec<Entry>> {
    if !is_ours {
        return Ok(vec![entry(DnsClass::NONE, Ttl::ZERO, Rtype::ANY, &[])?]);
    }
    let mut prerequisites = Vec::new();
    for (set, rtype) in found.sets.iter().zip(TYPES) {
        if set.is_empty() {
            prerequisites.push(entry(DnsClass::NONE, Ttl::ZERO, rtype, &[])?);
        }
        for data in set {
            prerequisites.push(entry(DnsClass::IN, Ttl::ZERO, rtype, data)?);
        }
    }
    Ok(prerequisites)
}

fn too_long<E>(_: E) -> Error {
    Error::bug("a DNS message has no room for a record")
}
