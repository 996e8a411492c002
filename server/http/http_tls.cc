#include "server/http/http_tls.h"

#include <boost/asio/buffer.hpp>
#include <string>

namespace swizzle {
namespace {

using boost::asio::ssl::context;

boost::asio::const_buffer BufferOf(const std::string& text) { return boost::asio::buffer(text.data(), text.size()); }

}  // namespace

std::shared_ptr<context> HttpTls::Current() {
  if (certificates_ == nullptr) return nullptr;
  std::shared_ptr<const TlsMaterial> current = certificates_->current();
  if (current == material_) return context_;
  auto made = std::make_shared<context>(context::tls_server);
  made->set_options(context::default_workarounds | context::no_sslv2 | context::no_sslv3 | context::no_tlsv1 |
                    context::no_tlsv1_1 | context::no_compression | SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION);
  // Whoever came back by an old session would show no certificate, or one that is no longer taken.
  SSL_CTX_set_session_cache_mode(made->native_handle(), SSL_SESS_CACHE_OFF);
  made->use_certificate_chain(BufferOf(current->certificate));
  made->use_private_key(BufferOf(current->key), context::pem);
  if (certificates_->wants_client_certificates()) {
    made->add_certificate_authority(BufferOf(current->client_ca));
    made->set_verify_mode(boost::asio::ssl::verify_peer | boost::asio::ssl::verify_fail_if_no_peer_cert);
  }
  material_ = std::move(current);
  context_ = std::move(made);
  return context_;
}

}  // namespace swizzle
